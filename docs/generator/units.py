"""Numbers as people read them; the unit is the word in their name."""

_BYTES = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_WORDS = {
    "BITS": "bits", "CHARS": "characters", "COMMANDS": "commands", "ROWS": "rows",
    "ITEMS": "items", "JOBS": "jobs", "TASKS": "tasks", "SEGMENTS": "segments",
    "SNAPSHOTS": "snapshots", "PARTITIONS": "partitions", "RETRIES": "retries",
    "EXPIRIES": "expiries", "PERCENT": "%", "MOVES": "moves", "ENDINGS": "elements",
    "ELEMENTS": "elements", "RESOURCES": "files", "EXPRESSIONS": "expressions",
    "DIGITS": "digits", "STEPS": "steps", "NESTING": "levels", "ITERATIONS": "names",
    "WARNINGS": "warnings", "WORK": "items",
}  # fmt: skip


def value_text(name: str, value: object) -> str:
    """A value with the unit that its name says."""
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value).lower() if isinstance(value, bool) else str(value)
    words = name.upper().split("_")
    if "BYTES" in words:
        return _scaled(value, _BYTES, "bytes")
    if "MS" in words:
        return _scaled(value, _MS, "ms")
    unit = next((text for word, text in _WORDS.items() if word in words), "")
    number = f"{value:,}" if name.upper() != "PORT" else str(value)
    return f"{number} {unit}".rstrip()


def _scaled(value: int, scale: tuple[tuple[int, str], ...], smallest: str) -> str:
    for size, unit in scale:
        if value >= size and value % size == 0:
            return f"{value // size:,} {unit}"
    return f"{value:,} {smallest}"
