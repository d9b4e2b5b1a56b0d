"""`holdfast tokens`: the credentials of machines."""

from typing import Annotated

import typer

from holdfast.cli import spans
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Url

app = typer.Typer(
    name="tokens",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Credentials of machines: create, list, delete tokens.",
)


@app.command(
    epilog=examples(
        "holdfast tokens create robot --lasts 30d",
        "(umask 077; holdfast tokens create robot > robot-token)",
        "HOLDFAST_TOKEN=$(cat robot-token) holdfast worker shop:app",
    )
)
def create(
    client_id: Annotated[
        str, typer.Argument(help="The machine; it may have many tokens.", metavar="CLIENT")
    ],
    lasts: Annotated[
        str | None,
        typer.Option(
            help="How long it is valid, such as 12h or 30d.",
            metavar=spans.METAVAR,
            show_default="for ever",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a token and print it. The node keeps only its hash, so it is shown only once.

    The token has the permissions of its client: grant them to client:CLIENT.
    """
    from holdfast.cli.output import moment, print_json, print_line, print_note
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.identity.shapes import NewToken

    lasts_ms = spans.maybe_span_ms(lasts)
    if lasts_ms == 0:  # to the node it is "for ever", which nobody means by it
        raise InvalidArgument(f"Expected a span longer than nothing, but found {lasts!r}")
    receipt = ask(url, lambda api: api.identity.create_token(NewToken(client_id, lasts_ms or 0)))
    if json:
        print_json(receipt)
        return
    until = f"until {moment(receipt.expires)}" if receipt.expires else "for ever"
    print_line(receipt.token)
    print_note(f"token {receipt.token_id} of client:{client_id}, good {until}; not shown again")


@app.command("list", epilog=examples("holdfast tokens list", "holdfast tokens list --json"))
def list_tokens(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all tokens that you may see, with their owners and without their secrets."""
    from holdfast.cli.output import moment, print_json, print_table
    from holdfast.cli.remote import ask

    tokens = ask(url, lambda api: api.identity.tokens())
    if json:
        print_json(tokens)
        return
    print_table(
        ("ID", "CLIENT", "CREATED", "EXPIRES"),
        (
            (each.token_id, each.client_id, moment(each.created), moment(each.expires) or "never")
            for each in tokens.items
        ),
        empty="no tokens",
    )


@app.command(epilog=examples("holdfast tokens delete 3f9c1a2b4d5e"))
def delete(
    token_id: Annotated[
        str, typer.Argument(help="As `holdfast tokens list` shows it.", metavar="ID")
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Delete a token. Requests with it are rejected from then on."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.identity.delete_token(token_id))
    if json:
        print_json({"tokenId": token_id, "state": "DELETED"})
    else:
        print_line(f"{token_id}  deleted")
