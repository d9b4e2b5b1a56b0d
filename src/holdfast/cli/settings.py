"""`holdfast config`: the settings that a node would start with, and where each comes from."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Folder, Json

if TYPE_CHECKING:
    from holdfast.config import Loaded

app = typer.Typer(
    name="config",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Settings of a node: their values, and where each comes from.",
)

_HIDDEN = "***"
_LOGIN = re.compile(r"//[^@\s]+@")
_SECRET = re.compile(r"([\w.-]*(?:password|secret|token|key)[\w.-]*=)[^,&\s]+", re.IGNORECASE)


@app.command(
    epilog=examples(
        "holdfast config show                 the folder ./data and this environment",
        "holdfast config show ./data --changed",
        "holdfast config show ./data --json | jq '.items[] | select(.source != \"default\")'",
    )
)
def show(
    folder: Folder = DEFAULT_FOLDER,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only those that differ from their defaults.")
    ] = False,
    json: Json = False,
) -> None:
    """Show every setting of a node over a folder: its value, and where it comes from.

    A setting comes from its default, from holdfast.toml in the folder, or from the environment;
    options of `holdfast start` go before all of them. Passwords in URLs and settings are hidden.
    """
    from holdfast.cli.output import print_json, print_line, print_table
    from holdfast.config import Source, load_settings

    loaded = load_settings(folder)
    items = [
        {
            "name": name,
            "value": hidden(getattr(loaded.config, name)),
            "source": source,
            "place": _place(loaded, name),
        }
        for name, source in loaded.sources.items()
        if not changed or source is not Source.DEFAULT
    ]
    if json:
        print_json({"items": items})
        return
    print_table(
        ("SETTING", "VALUE", "SOURCE"),
        ((each["name"], _text(each["value"]), each["place"]) for each in items),
        empty="all settings have their defaults",
    )
    if loaded.path is None:
        print_line(f"there is no {folder / 'holdfast.toml'}")


def hidden(value: object) -> object:
    """A value without the secrets in it: logins in URLs, and what is called a password or key."""
    if not isinstance(value, str):
        return value
    return _SECRET.sub(rf"\1{_HIDDEN}", _LOGIN.sub(f"//{_HIDDEN}@", value))


def _place(loaded: "Loaded", name: str) -> str:
    """Where somebody would change it."""
    from holdfast.config import Source
    from holdfast.config.environment import variable_of

    source = loaded.sources[name]
    if source is Source.FILE:
        return str(loaded.path)
    return variable_of(name) if source is Source.ENVIRONMENT else str(source)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
