"""What goes wrong in an expression: errors for the caller, problems that become null."""

from holdfast.errors import InvalidArgument


class FeelError(InvalidArgument):
    """The expression cannot be read, or evaluating it takes more than is allowed."""


class Problem(Exception):
    """A value that an operation cannot work with: the result is null and this is the warning."""
