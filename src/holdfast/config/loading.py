"""Where settings come from: defaults, `holdfast.toml`, the environment, options of a command."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.config.environment import LINKS_ADVICE, nearest, unknown_problems, variable_of
from holdfast.config.settings import FILE_NAME, Config, kind_of, problem_of
from holdfast.errors import InvalidArgument

_TYPES = {field.name: field.type for field in msgspec.structs.fields(Config)}


class Source(StrEnum):
    """Where a value comes from; what is later in this list wins."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


class Loaded(NamedTuple):
    """A configuration, and where each of its settings comes from."""

    config: Config
    sources: dict[str, Source]
    path: Path | None  # of the file that was read


class _Given(NamedTuple):
    """A value that somebody wrote, and where."""

    name: str
    value: Any
    source: Source
    place: str


def load_config(
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Config:
    """Defaults, then `holdfast.toml` in the folder, then the environment, then the overrides."""
    return load_settings(folder, environment, **overrides).config


def load_settings(
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Loaded:
    """The same, with where each setting comes from; InvalidArgument names all that is wrong."""
    path = (folder or Path.cwd()) / FILE_NAME
    text = _read(path)
    environment = os.environ if environment is None else environment
    given = [
        *(_in_file(path, text) if text is not None else ()),
        *_in_environment(environment),
        *(
            _Given(name, value, Source.OPTION, name)
            for name, value in overrides.items()
            if value is not None
        ),
    ]
    settings, problems = _checked(given)
    problems += unknown_problems(environment, _TYPES)
    if problems:
        raise InvalidArgument(_told(problems), problems=problems)
    sources = dict.fromkeys(_TYPES, Source.DEFAULT) | {each.name: each.source for each in given}
    return Loaded(Config(**settings), sources, None if text is None else path)


def client_problems() -> list[str]:
    """What is wrong with the names that a client finds in the environment."""
    return unknown_problems(os.environ, _TYPES, of_client=True)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        there = next((each for each in path.parents if each.is_file()), path.parent)
        raise InvalidArgument(f"Expected a folder at {there}, but it is a file") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidArgument(f"The settings in {path} cannot be read: {reason}") from error


def _in_file(path: Path, text: str) -> Iterator[_Given]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{path} is not valid TOML: {error}") from error
    for name, value in found.items():
        line = re.search(rf"^\s*\[?\[?[\"']?{re.escape(name)}\b", text, re.MULTILINE)
        number = 0 if line is None else text.count("\n", 0, line.end()) + 1
        yield _Given(name, value, Source.FILE, f"{name} ({path}, line {number})")


def _in_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    for name in _TYPES:
        variable = variable_of(name)
        if (text := environment.get(variable)) is not None:
            yield _Given(name, text, Source.ENVIRONMENT, variable)


def _checked(given: list[_Given]) -> tuple[dict[str, Any], list[str]]:
    """What is set, by name, and what is wrong with what was given."""
    settings: dict[str, Any] = {}
    problems: list[str] = []
    for each in given:
        if each.name not in _TYPES:
            problems.append(f"{each.place} is not a setting{nearest(each.name, _TYPES)}")
            continue
        try:
            value = msgspec.convert(each.value, _TYPES[each.name], strict=False)
        except msgspec.ValidationError:
            problem = f"expected {kind_of(each.name)}, but found {each.value!r}"
        else:
            settings[each.name] = value
            problem = problem_of(each.name, value)
        if problem:
            link = str(each.value).startswith("tcp://") and each.source is Source.ENVIRONMENT
            problems.append(f"{each.place}: {problem}" + (f"; {LINKS_ADVICE}" if link else ""))
    return settings, problems


def _told(problems: list[str]) -> str:
    if len(problems) == 1:
        return f"The configuration is wrong: {problems[0]}"
    lines = "".join(f"\n  {each}" for each in problems)
    return f"The configuration has {len(problems)} problems:{lines}"
