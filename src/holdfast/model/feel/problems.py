"""What goes wrong in an expression: errors for the caller, problems that become null."""

from typing import Self

from holdfast.errors import InvalidArgument
from holdfast.model.feel.syntax import Place


class FeelError(InvalidArgument):
    """The expression cannot be read, or evaluating it takes more than is allowed, or asserts."""


class Problem(Exception):
    """A value that an operation cannot work with: the result is null and this is the warning."""


class Spent(FeelError):
    """The evaluation has reached a bound; the expression adds itself and the place.

    The place is that of the innermost loop, call or operator that was under way.
    """

    place: Place | None = None
    what: str = ""  # what was being done, for the message
    advice: str = "; let it do less, or do it in a task"

    def at(self, place: Place, what: str = "") -> Self:
        """The same with its place, unless an inner part has said one."""
        self.place = self.place or place
        self.what = self.what or what
        return self


class Unmet(Spent):
    """A condition that the expression asserts does not hold."""

    advice: str = ""
