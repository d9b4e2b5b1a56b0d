"""What MODULE:NAME on the command line means: something in a user's own module."""

from typing import Any

from holdfast.errors import InvalidArgument, NotFound


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
        raise NotFound(f"Expected module {module_name}, but {error}", module=module_name) from error
    return getattr(module, attribute, None), f"{attribute} in {module.__file__}"
