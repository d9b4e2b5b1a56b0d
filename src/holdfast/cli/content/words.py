"""What people type and read about content."""

from collections.abc import Iterable

from holdfast.cli.output import number
from holdfast.errors import InvalidArgument
from holdfast.gateway.content.shapes import QueuedPackage

_PATHS_SHOWN = 3


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """K=V, as often as it was given."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InvalidArgument(f"Expected NAME=VALUE for {option}, but found {text!r}")
        found[name] = value
    return found


def paths_text(package: QueuedPackage) -> str:
    """The first paths of a package."""
    more = len(package.paths) - _PATHS_SHOWN
    shown = " ".join(package.paths[:_PATHS_SHOWN])
    return f"{shown} and {number(more)} more" if more > 0 else shown
