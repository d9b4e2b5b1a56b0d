"""`holdfast transactions`: those that are not done everywhere, and what they wait for."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, Json, Limit, Url, key_argument

if TYPE_CHECKING:
    from holdfast.gateway.transactions.shapes import RefusedStep, TransactionView

app = typer.Typer(
    name="transactions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Transactions that are not done everywhere: list them, show what they wait for.",
)

_Key = Annotated[str, key_argument("a transaction")]


@app.command(
    "list",
    epilog=examples(
        "holdfast transactions list",
        "holdfast transactions list --json | jq -r '.items[].transactionKey'",
    ),
)
def list_transactions(
    limit: Limit = 100, after: After = None, url: Url = DEFAULT_URL, json: Json = False
) -> None:
    """List transactions that are open, or whose decision has not reached all partitions."""
    from holdfast.cli.output import age, number, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.transactions.shapes import TransactionQuery

    page = ask(url, lambda api: api.transactions.page(TransactionQuery(limit, after)))
    if json:
        print_json(page)
        return
    print_table(
        ("KEY", "STATE", "HOME", "PARTITIONS", "WAITS FOR", "AGE", "WHY"),
        (
            (
                each.transaction_key, each.state, number(each.partition), _numbers(each.partitions),
                _numbers(each.missing), age(each.begun), _why(each),
            )
            for each in page.items
        ),
        empty="no transaction is open",
    )  # fmt: skip
    if page.after is not None:
        print_note(f"there are more: --after {page.after}")


@app.command(
    epilog=examples(
        "holdfast transactions show 2251799813685249",
        "holdfast transactions show 2251799813685249 --json | jq '.refused[].reason'",
    )
)
def show(key: _Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show a transaction while it is open, and for a while after: its operations and reasons."""
    from holdfast.cli.output import age, moment, print_fields, print_json
    from holdfast.cli.remote import ask

    view = ask(url, lambda api: api.transactions.get(key))
    if json:
        print_json(view)
        return
    timeout = "" if view.timeout_ms is None else f"{view.timeout_ms / 1000:g} s"
    print_fields(
        [
            ("key", view.transaction_key),
            ("state", view.state),
            ("home", f"partition {view.partition}"),
            ("partitions", _numbers(view.partitions)),
            ("waits for", _numbers(view.missing)),
            ("begun", f"{moment(view.begun)}, {age(view.begun)} ago"),
            ("decided", moment(view.decided)),
            ("timeout", timeout),
            *(
                (f"operation {at}", f"{each.kind} {each.key or ''} on partition {each.partition}")
                for at, each in enumerate(view.operations)
            ),
            *(("refused", _reason(each)) for each in view.refused),
            *(("failed", _reason(each)) for each in view.failed),
        ]
    )


def _numbers(partitions: list[int]) -> str:
    return ", ".join(map(str, partitions))


def _why(view: "TransactionView") -> str:
    return "; ".join(each.code for each in (*view.failed, *view.refused))


def _reason(each: "RefusedStep") -> str:
    which = "" if each.operation < 0 else f"operation {each.operation}: "
    return f"{which}{each.code}: {each.reason}"
