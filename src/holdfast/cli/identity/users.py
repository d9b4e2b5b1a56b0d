"""`holdfast users`: the people that a node knows."""

from typing import Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Url

app = typer.Typer(
    name="users",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The people that a node knows: create, list, update, delete.",
)

_Username = Annotated[str, typer.Argument(help="The login name.", metavar="USERNAME")]
_FromPrompt = Annotated[bool, typer.Option("--password-prompt", help="Prompt for a password.")]
_FromStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read a password from standard input, one line.")
]


@app.command(
    epilog=examples(
        "holdfast users create ann --name 'Ann Lee' --email ann@example.org",
        "holdfast users create ann --password-prompt",
        "holdfast users create ann --password-stdin < password.txt",
    )
)
def create(
    username: _Username,
    name: Annotated[str, typer.Option(help="Display name.")] = "",
    email: Annotated[str, typer.Option(help="Email address.")] = "",
    password_prompt: _FromPrompt = False,
    password_stdin: _FromStdin = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a user. The user may do nothing until permissions are granted.

    A password only works if the node has basic_authentication. Users with a signed token of
    an identity provider need no password, and do not have to be created.
    """
    from holdfast.cli.remote import ask
    from holdfast.gateway.identity.shapes import NewUser

    new = NewUser(username, _password(password_prompt, password_stdin), name, email)
    ask(url, lambda api: api.identity.create_user(new))
    _print_state(username, "CREATED", json)


@app.command("list", epilog=examples("holdfast users list", "holdfast users list --json"))
def list_users(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all users that you may see."""
    from holdfast.cli.output import print_json, print_table
    from holdfast.cli.remote import ask

    users = ask(url, lambda api: api.identity.users())
    if json:
        print_json(users)
        return
    print_table(
        ("USERNAME", "NAME", "EMAIL", "PASSWORD"),
        (
            (each.username, each.name, each.email, "yes" if each.has_password else "no")
            for each in users.items
        ),
        empty="no users",
    )


@app.command(
    epilog=examples(
        "holdfast users update ann --email ann.lee@example.org",
        "holdfast users update ann --password-prompt",
    )
)
def update(
    username: _Username,
    name: Annotated[str | None, typer.Option(help="Display name.", show_default="as it is")] = None,
    email: Annotated[
        str | None, typer.Option(help="Email address.", show_default="as it is")
    ] = None,
    password_prompt: _FromPrompt = False,
    password_stdin: _FromStdin = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Change the details of a user. Omitted options stay unchanged."""
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument, NotFound
    from holdfast.gateway.api import Api
    from holdfast.gateway.identity.shapes import UserChange

    password = _password(password_prompt, password_stdin)
    if name is None and email is None and password is None:
        raise InvalidArgument("Expected something to change, but found nothing")

    async def change(api: Api) -> None:
        new_name, new_email = name, email
        if new_name is None or new_email is None:  # the node takes both as they are said
            known = {each.username: each for each in (await api.identity.users()).items}
            if username not in known:
                raise NotFound(f"There is no user {username!r}")
            new_name = known[username].name if new_name is None else new_name
            new_email = known[username].email if new_email is None else new_email
        await api.identity.update_user(username, UserChange(new_name, new_email, password))

    ask(url, change)
    _print_state(username, "UPDATED", json)


@app.command(epilog=examples("holdfast users delete ann"))
def delete(username: _Username, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete a user with all grants. The log keeps the user's commands."""
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.identity.delete_user(username))
    _print_state(username, "DELETED", json)


# --- inside -----------------------------------------------------------------------------------


def _password(from_prompt: bool, from_stdin: bool) -> str | None:
    """A password that is in no history of a shell and in no list of processes; None without one."""
    import sys

    from holdfast.errors import InvalidArgument

    if from_prompt and from_stdin:
        raise InvalidArgument("Expected --password-prompt or --password-stdin, but found both")
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif from_prompt:
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        return None
    if not password:
        raise InvalidArgument("Expected a password, but found an empty line")
    return password


def _print_state(username: str, state: str, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line

    if as_json:
        print_json({"username": username, "state": state})
    else:
        print_line(f"{username}  {state.lower()}")
