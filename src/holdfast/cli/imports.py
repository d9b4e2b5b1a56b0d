"""What MODULE:NAME on the command line means: something in a user's own module."""

from typing import Any

from holdfast.errors import HoldfastError, InvalidArgument, NotFound


def import_target(target: str, example: str) -> tuple[Any, str]:
    """What MODULE:NAME names, looked for in the current folder first, and where it was found."""
    import importlib
    import sys
    from pathlib import Path

    module_name, colon, attribute = target.partition(":")
    if not (module_name and colon and attribute):
        raise InvalidArgument(f"Expected {example}, but found {target!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise NotFound(
                f"There is no module {module_name} in {folder} or among the installed packages",
                module=module_name,
            ) from error
        raise _broken(module_name, error) from error
    except HoldfastError as error:
        path, line = _line_of(error)
        message = f"{error.message} ({path}, line {line})"
        raise type(error)(message, **error.fields) from error
    except Exception as error:
        raise _broken(module_name, error) from error
    if not hasattr(module, attribute):
        raise NotFound(f"Expected {attribute!r} in {module.__file__}, but there is no such name")
    return getattr(module, attribute), f"{attribute} in {module.__file__}"


def _broken(module_name: str, error: Exception) -> InvalidArgument:
    """The user's own module fails: told with the line in it, as the user's errors are."""
    reason = str(error)
    if isinstance(error, SyntaxError):
        path, line, reason = error.filename or module_name, error.lineno, error.msg
    else:
        path, line = _line_of(error)
    return InvalidArgument(
        f"Module {module_name} cannot be imported: {type(error).__name__}: {reason}"
        f" ({path}, line {line})",
        module=module_name,
    )


def _line_of(error: Exception) -> tuple[str, int | None]:
    """The last line outside holdfast and Python itself that led to an error."""
    import traceback
    from pathlib import Path

    ours = str(Path(__file__).parents[1])
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        each
        for each in frames
        if "importlib" not in each.filename and not each.filename.startswith(ours)
    ]
    last = (own or frames)[-1]
    return last.filename, last.lineno
