"""`holdfast publish`: a message for the instances that wait for it."""

from typing import Annotated

import typer

from holdfast.cli import spans
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Url, Variables


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast publish payment --key order-42 --variables '{\"amount\": 99.5}'",
            "holdfast publish payment --key order-42 --ttl 1h --id bank-7731",
        )
    )(publish)


def publish(
    name: Annotated[str, typer.Argument(help="The name of the message.", metavar="NAME")],
    key: Annotated[str, typer.Option(help="Correlation key: which instances get it.")] = "",
    variables: Variables = "{}",
    ttl: Annotated[
        str,
        typer.Option(
            help="How long to buffer it for instances that wait later.", metavar=spans.METAVAR
        ),
    ] = "0s",
    message_id: Annotated[
        str | None,
        typer.Option(
            "--id", help="Deduplication: the same id is rejected while the message is buffered."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Publish a message. It is durable when this returns; waiting instances continue."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.payload import parse_variables
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import NewMessage

    message = NewMessage(
        name, key, parse_variables(variables), message_id, spans.parse_span_ms(ttl)
    )
    receipt = ask(url, lambda api: api.messages.publish(message))
    if json:
        print_json(receipt)
    else:
        print_line(f"{receipt.message_key}  published")
