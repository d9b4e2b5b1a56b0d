"""What is wrong with a package, and how it is told."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.content.messages import Package
from holdfast.errors import DataLoss, InvalidArgument


class Wrong(Exception):
    """What is wrong with a package, without its id."""

    def __init__(self, what: str, entry: str = "", *, is_damage: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.entry = entry[:200]
        self.is_damage = is_damage  # bytes are not those that were published


@contextmanager
def refusing(message: Package) -> Iterator[None]:
    """Says of which package something is wrong, in which entry, and what to do."""
    try:
        yield
    except Wrong as wrong:
        entry = f" the entry {wrong.entry!r}:" if wrong.entry else ""
        kind = DataLoss if wrong.is_damage else InvalidArgument
        raise kind(
            f"The package {message.package_id[:100]} of {message.publisher[:100]} is refused:"
            f"{entry} {wrong.what}. Nothing of it is imported; publish it again",
            package_id=message.package_id[:100],
            publisher=message.publisher[:100],
            entry=wrong.entry,
        ) from None
