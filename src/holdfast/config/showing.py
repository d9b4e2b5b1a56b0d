"""Settings as they are shown to people: where each comes from, and without secrets."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.config.environment import variable_of
from holdfast.config.loading import Loaded, Source, load_settings
from holdfast.config.settings import Config

_HIDDEN = "***"
_LOGIN = re.compile(r"//[^@\s]+@")
_SECRET = re.compile(r"([\w.-]*(?:password|secret|token|key)[\w.-]*=)[^,&\s]+", re.IGNORECASE)


class Setting(NamedTuple):
    """A setting, and where somebody would change it."""

    name: str
    value: object
    source: Source
    place: str  # a file, a variable of the environment, or the source itself


def settings_of(loaded: Loaded) -> list[Setting]:
    """All settings without the secrets in them."""
    return [
        Setting(name, hidden(getattr(loaded.config, name)), source, _place(loaded, name))
        for name, source in loaded.sources.items()
    ]


def running_settings(
    config: Config, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> list[Setting]:
    """The settings of a node that runs: what its folder and environment do not say, it was told."""
    told = load_settings(folder, environment) if folder is not None else _DEFAULTS
    sources = {
        name: source if getattr(told.config, name) == getattr(config, name) else Source.OPTION
        for name, source in told.sources.items()
    }
    return settings_of(Loaded(config, sources, told.path))


_DEFAULTS = Loaded(
    Config(), {each.name: Source.DEFAULT for each in msgspec.structs.fields(Config)}, None
)


def hidden(value: object) -> object:
    """A value without the secrets in it: logins in URLs, and what is called a password or key."""
    if not isinstance(value, str):
        return value
    return _SECRET.sub(rf"\1{_HIDDEN}", _LOGIN.sub(f"//{_HIDDEN}@", value))


def _place(loaded: Loaded, name: str) -> str:
    source = loaded.sources[name]
    if source is Source.FILE:
        return str(loaded.path)
    return variable_of(name) if source is Source.ENVIRONMENT else str(source)
