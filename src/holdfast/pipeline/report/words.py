"""Numbers and spans of time as people say them."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def span_text(span_ms: float) -> str:
    """A span in the largest unit that fits: 12 ms, 3.4 s, 5 min, 2 h."""
    for length_ms, unit in _UNITS:
        if span_ms >= length_ms:
            value = span_ms / length_ms
            text = f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:,.0f}"
            return f"{text} {unit}"
    return f"{span_ms:.0f} ms"


def count_text(value: float) -> str:
    """A number with its thousands apart, and a place behind the point only if it is small."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def cut(text: str, characters_max: int) -> str:
    """Text that fits; what is left out is seen to be."""
    return text if len(text) <= characters_max else text[: characters_max - 1].rstrip() + "…"
