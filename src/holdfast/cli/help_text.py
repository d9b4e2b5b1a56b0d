"""The ends of help texts: examples under each command, exit codes under the first."""

from holdfast.cli.exit_codes import MEANINGS

_AS_IT_STANDS = "\b"  # Typer keeps the line breaks of a paragraph that begins with this


def examples(*lines: str) -> str:
    """The examples of a command, one a line."""
    return "\n".join((_AS_IT_STANDS, "Examples:", *(f"  {line}" for line in lines)))


def exit_codes() -> str:
    """The table of exit codes."""
    rows = (f"  {code:>3}  {code.name:<18}  {meaning}" for code, meaning in MEANINGS.items())
    return "\n".join((_AS_IT_STANDS, "Exit codes:", *rows))
