"""`holdfast permissions` and `holdfast whoami`: who may do what with which resource."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.identity.words import OWNER, OWNER_HELP, RESOURCE
from holdfast.cli.options import DEFAULT_URL, Json, Url

if TYPE_CHECKING:
    from holdfast.gateway.api import Api
    from holdfast.gateway.identity.shapes import AuthorizationView, NewAuthorization

app = typer.Typer(
    name="permissions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Grants of permissions on resources: list, grant, revoke.",
)

_COLUMNS = ("KEY", "OWNER", "RESOURCE", "PERMISSIONS")


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(epilog=examples("holdfast whoami", "holdfast whoami --json | jq -r '.roles[]'"))(
        whoami
    )


def whoami(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show your identity, groups, roles and permissions."""
    from holdfast.cli.identity.words import owner_text
    from holdfast.cli.output import print_fields, print_json, print_line, print_table
    from holdfast.cli.remote import ask

    me = ask(url, lambda api: api.identity.own_identity())
    if json:
        print_json(me)
        return
    if me.owner_type is None or me.owner_id is None:
        print_line(
            "not authenticated: the node has no authorization, and every client may do anything"
        )
        return
    print_fields(
        [
            ("you are", owner_text(me.owner_type, me.owner_id)),
            ("groups", ", ".join(me.groups)),
            ("roles", ", ".join(me.roles)),
        ]
    )
    print_table(_COLUMNS, _rows(me.authorizations), empty="you have no permissions")


@app.command(
    "list",
    epilog=examples(
        "holdfast permissions list",
        "holdfast permissions list --owner client:robot",
        "holdfast permissions list --resource TASK:mail --json",
    ),
)
def list_permissions(
    owner: Annotated[str | None, typer.Option(help=f"Only of {OWNER_HELP}", metavar=OWNER)] = None,
    resource: Annotated[
        str | None,
        typer.Option(help="Only about TYPE or TYPE:ID, as it was granted.", metavar=RESOURCE),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List grants, the oldest first."""
    from holdfast.cli.identity.words import parse_owner, parse_resource
    from holdfast.cli.output import print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.identity.shapes import AuthorizationQuery

    query = AuthorizationQuery(
        *(parse_owner(owner) if owner is not None else (None, None)),
        *(parse_resource(resource) if resource is not None else (None, None)),
    )
    found = ask(url, lambda api: api.identity.authorizations(query))
    if json:
        print_json(found)
    else:
        print_table(_COLUMNS, _rows(found.items), empty="nothing was granted")


@app.command(
    epilog=examples(
        "holdfast permissions grant client:robot TASK:mail WORK CREATE",
        "holdfast permissions grant role:clerk PROCESS_DEFINITION:order CREATE_PROCESS_INSTANCE",
        "holdfast permissions grant group:ops 'BATCH:*' READ UPDATE",
    )
)
def grant(
    owner: Annotated[str, typer.Argument(help=OWNER_HELP, metavar=OWNER)],
    resource: Annotated[
        str, typer.Argument(help="TYPE:ID; TYPE:* is every one of them.", metavar=RESOURCE)
    ],
    permissions: Annotated[
        list[str], typer.Argument(help="What they may do with it.", metavar="PERMISSION")
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Grant permissions to a user, client, group or role. Earlier grants for the resource stay.

    Resources and their permissions are in docs/reference/permissions.md. The owner does not have to
    exist: users and groups may come from an identity provider.
    """
    from holdfast.cli.identity.words import parse_owner, parse_permissions, parse_resource
    from holdfast.cli.output import print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.identity.shapes import AuthorizationView, NewAuthorization

    who = parse_owner(owner)
    type_, id_ = parse_resource(resource)
    if id_ is None:
        raise InvalidArgument(
            f"Expected {type_}:ID, or {type_}:* for every one, but found {resource!r}"
        )
    wanted = NewAuthorization(*who, type_, id_, parse_permissions(type_, permissions))
    key, given = ask(url, lambda api: _grant(api, wanted))
    view = AuthorizationView(key, *who, type_, id_, given.permission_types)
    if json:
        print_json(view)
    else:
        print_table(_COLUMNS, _rows([view]), empty="")


@app.command(epilog=examples("holdfast permissions revoke 2251799813685249"))
def revoke(
    key: Annotated[
        str, typer.Argument(help="As `holdfast permissions list` shows it.", metavar="KEY")
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Revoke the grant with this key."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.identity.delete_authorization(key))
    if json:
        print_json({"authorizationKey": key, "state": "DELETED"})
    else:
        print_line(f"{key}  revoked")


# --- inside -----------------------------------------------------------------------------------


async def _grant(api: "Api", wanted: "NewAuthorization") -> "tuple[str, NewAuthorization]":
    """Its key, and what is permitted now: an owner has one authorization for each resource."""
    import msgspec

    from holdfast.errors import AlreadyExists
    from holdfast.gateway.identity.shapes import AuthorizationQuery

    try:
        return (await api.identity.create_authorization(wanted)).authorization_key, wanted
    except AlreadyExists:
        about = AuthorizationQuery(
            wanted.owner_type, wanted.owner_id, wanted.resource_type, wanted.resource_id
        )
        known = (await api.identity.authorizations(about)).items
        if not known:  # taken away in the meantime, or not for us to see
            raise
    both = dict.fromkeys((*known[0].permission_types, *wanted.permission_types))
    changed = msgspec.structs.replace(wanted, permission_types=list(both))
    await api.identity.update_authorization(known[0].authorization_key, changed)
    return known[0].authorization_key, changed


def _rows(views: "Iterable[AuthorizationView]") -> list[tuple[str, ...]]:
    from holdfast.cli.identity.words import owner_text

    return [
        (
            each.authorization_key, owner_text(each.owner_type, each.owner_id),
            f"{each.resource_type}:{each.resource_id}", " ".join(each.permission_types),
        )
        for each in views
    ]  # fmt: skip
