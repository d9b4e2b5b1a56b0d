"""What goes wrong outside holdfast's own errors, in holdfast's words: arguments, files, folders."""

from pathlib import Path
from typing import Any

from holdfast.errors import (
    Forbidden,
    HoldfastError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)

_FULL = (28, 122)  # ENOSPC, EDQUOT
_NO_FILES = (23, 24)  # ENFILE, EMFILE
QUOTE = "'"


def usage_error(error: Any) -> InvalidArgument:
    """A command line that could not be understood, as an error of holdfast."""
    context = getattr(error, "ctx", None)
    name = getattr(getattr(error, "param", None), "opts", None)
    message = _value_problem(error) or error.format_message()
    command = "holdfast" if context is None else context.command_path
    message = message.rstrip(".")  # it may end in a question
    return InvalidArgument(
        f"{message}{'' if message.endswith('?') else '.'} See {command} --help",
        **({"option": name[0]} if name else {}),
    )


def _value_problem(error: Any) -> str | None:
    """What is wrong with the value of an option: the parser tells it by kinds, not by words."""
    found = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if found is None or parameter is None:
        return None
    problem = found()[0]
    expected = _expected(problem["type"], problem.get("ctx") or {}, str(problem["msg"]))
    if expected is None:
        return None
    name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
    return f"Expected {expected} for {name or parameter.opts[0]}, but found {problem['input']!r}"


def _expected(kind: str, about: dict[str, Any], message: str) -> str | None:
    bounds = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
    if kind in bounds:
        word, key = bounds[kind]
        return f"{word} {about[key]}"
    if kind == "value_error" and (choices := message.partition(" is not one of ")[2]):
        return f"one of {choices.replace(QUOTE, '').rstrip('.')}"
    if kind.startswith("int"):
        return "a whole number"
    return {"float_parsing": "a number", "bool_parsing": "true or false"}.get(kind)


def file_error(error: OSError) -> HoldfastError:
    """A file or folder that cannot be used, as an error of holdfast."""
    path = error.filename if isinstance(error.filename, str) else ""
    reason = (error.strerror or str(error)).lower()
    fields = {"path": path} if path else {}
    what = path or "a file"
    match error:
        case NotADirectoryError():
            there = _first_file(path)
            return InvalidArgument(f"Expected a folder at {there}, but it is a file", path=there)
        case IsADirectoryError():
            return InvalidArgument(f"Expected a file at {what}, but it is a folder", **fields)
        case FileNotFoundError():
            return NotFound(f"There is no file or folder {what}", **fields)
        case PermissionError():
            return Forbidden(
                f"No permission to use {what}: run the command as its owner, or change its rights"
                " (chmod, chown)",
                **fields,
            )
        case _ if error.errno in _FULL:
            return ResourceExhausted(f"No space is left to write {what}: free some", **fields)
        case _ if error.errno in _NO_FILES:
            return ResourceExhausted(
                "The process has no file descriptors left: raise the limit (ulimit -n)"
            )
        case _:
            return Unavailable(f"{what} cannot be used: {reason}", **fields)


def _first_file(path: str) -> str:
    """Of a path below something that is no folder: that something."""
    here = Path(path)
    return str(next((each for each in (here, *here.parents) if each.is_file()), here))
