"""`build/bench.json`: the figures of this run, and of earlier runs what it did not repeat.

A machine that has not measured yet begins with `bench/figures.json`, the figures that
docs/benchmarks.md shows: a run of one benchmark then changes only its own rows of that page.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.places import BUILD, ROOT

RESULTS = BUILD / "bench.json"
PUBLISHED = ROOT / "bench" / "figures.json"
Row = dict[str, Any]


def merge(earlier: Sequence[Row], rows: Sequence[Row], replaced: Sequence[str] = ()) -> list[Row]:
    """New rows in place of the old of the same name and figure; the others stay where they are.

    Of the benchmarks in `replaced`, which were run to their end, figures that no longer exist go.
    """
    new = {(row["name"], row["figure"]): row for row in rows}
    merged: list[Row] = []
    for row in earlier:
        key = (row["name"], row["figure"])
        if key in new:
            merged.append(new.pop(key))
        elif row["name"] not in replaced:
            merged.append(row)
    return merged + list(new.values())


def earlier_rows() -> list[Row]:
    """The rows of earlier runs on this machine, or the published ones where there are none."""
    return load(RESULTS) or load(PUBLISHED)


def load(path: Path) -> list[Row]:
    """The rows in a file; none if there is no file or it is not ours."""
    try:
        rows = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    return rows if isinstance(rows, list) else []


def save(rows: Sequence[Row], path: Path = RESULTS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".json.new")
    unfinished.write_text(json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n")
    unfinished.replace(path)
