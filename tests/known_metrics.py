"""The metrics that the reference lists, which is generated from the code."""

import re
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"
_ROW = re.compile(r"\| `(\w+)` \| (\w+) \| ([^|]*) \|")
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? \S+$")
_LABEL = re.compile(r'(\w+)="')


def known_metrics() -> dict[str, set[str]]:
    """The labels of each sample that nodes export."""
    known: dict[str, set[str]] = {}
    for name, kind, labels in _ROW.findall(REFERENCE.read_text()):
        of = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            known |= {f"{name}_bucket": of | {"le"}, f"{name}_sum": of, f"{name}_count": of}
        else:
            known[name] = of
    return known


def check_exported(exposition: bytes) -> set[str]:
    """What a node exports is in the reference, with its labels; the names that it exports."""
    known, names = known_metrics(), set[str]()
    for line in exposition.decode().splitlines():
        if not line.startswith("#"):
            found = _SAMPLE.match(line)
            assert found is not None, line
            name, labels = found[1], set(_LABEL.findall(found[2] or ""))
            assert known.get(name) == labels, f"{line}: the reference has {known.get(name)}"
            names.add(name)
    return names
