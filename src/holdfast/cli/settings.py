"""`holdfast config`: the settings that a node would start with, and where each comes from."""

from typing import Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Folder, Json

app = typer.Typer(
    name="config",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Settings of a node: their values, and where each comes from.",
)


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
    from holdfast.config.showing import settings_of

    loaded = load_settings(folder)
    items = [
        each._asdict()
        for each in settings_of(loaded)
        if not changed or each.source is not Source.DEFAULT
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


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
