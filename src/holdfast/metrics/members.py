"""The numbers of several members as those of one node."""

from collections.abc import Iterable

# What is not added up over the members of a node: the worst of them counts.
_HIGHEST = frozenset(
    {
        "holdfast_clock_ahead_seconds", "holdfast_disk_size_bytes",
        "holdfast_pipeline_lag_seconds", "holdfast_transactions_oldest_seconds",
    }
)  # fmt: skip
_LOWEST = frozenset({"holdfast_disk_free_bytes"})  # members share a disk, or each has one


def merged(expositions: Iterable[bytes]) -> bytes:
    """The numbers of several members as those of one node.

    A sample is known by its line up to the value: all members write labels in the same order.
    Nothing is parsed beyond that, so thousands of samples take milliseconds.
    """
    heads: dict[str, list[str]] = {}  # the comments of a family, by its name
    samples: dict[str, dict[str, float]] = {}
    for exposition in expositions:
        values: dict[str, float] = {}
        for line in exposition.decode().splitlines():
            if line.startswith("#"):
                family = line.split(" ", 3)[2]
                head = heads.setdefault(family, [])
                if line not in head:
                    head.append(line)
                values = samples.setdefault(family, {})
                continue
            sample, _, value = line.rpartition(" ")
            values[sample] = _together(sample, values.get(sample), float(value))
    lines: list[str] = []
    for family, head in heads.items():
        lines += head
        lines += [f"{sample} {value!r}" for sample, value in samples[family].items()]
    return "\n".join([*lines, ""]).encode()


def _together(sample: str, before: float | None, value: float) -> float:
    if before is None:
        return value
    if sample in _HIGHEST:
        return max(before, value)
    return min(before, value) if sample in _LOWEST else before + value
