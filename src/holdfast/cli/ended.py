"""What lists about ended things share: their options, and where the node's knowledge ends."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.gateway.shapes import ListScope

All = Annotated[
    bool, typer.Option("--all", help="Open ones, and behind them those that ended recently.")
]
Ended = Annotated[
    bool, typer.Option("--ended", help="Only those that ended recently, the last one first.")
]


def scope_of(is_all: bool, is_ended: bool) -> "ListScope":
    """Which things a list is to have."""
    from holdfast.gateway.shapes import ListScope

    if is_all:
        return ListScope.ALL
    return ListScope.ENDED if is_ended else ListScope.OPEN


def note_rest(after: str | None, ended_since: "datetime | None") -> None:
    """Says how to go on, or from when on the node knows what ended."""
    from holdfast.cli.output import moment, print_note

    if after is not None:
        print_note(f"there are more: --after {after}")
    elif ended_since is not None:
        print_note(
            f"what ended before {moment(ended_since)} is not listed here: see holdfast report, or"
            " the tables"
        )
