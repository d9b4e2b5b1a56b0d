"""What is wrong with a package, and how it is told."""

from types import TracebackType

from holdfast.content.messages import Package
from holdfast.errors import DataLoss, InvalidArgument


class Wrong(Exception):
    """What is wrong with a package, without its id."""

    def __init__(self, what: str, entry: str = "", *, is_damage: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.entry = entry[:200]
        self.is_damage = is_damage  # bytes are not those that were published


class Refusing:
    """Turns what is wrong into the error that says of which package."""

    __slots__ = ("_message",)

    def __init__(self, message: Package) -> None:
        self._message = message

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Wrong):
            raise refused(self._message, error) from None


def refused(message: Package, wrong: Wrong) -> DataLoss | InvalidArgument:
    """Says of which package something is wrong, in which entry, and what to do."""
    entry = f" the entry {wrong.entry!r}:" if wrong.entry else ""
    kind = DataLoss if wrong.is_damage else InvalidArgument
    return kind(
        f"The package {message.package_id[:100]} of {message.publisher[:100]} is refused:"
        f"{entry} {wrong.what}. Nothing of it is imported; publish it again",
        package_id=message.package_id[:100],
        publisher=message.publisher[:100],
        entry=wrong.entry,
    )
