"""`holdfast groups` and `holdfast roles`: what many are given at once.

They differ in what can be in them, and in the words for it.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.identity.words import OWNER, OWNER_HELP
from holdfast.cli.options import DEFAULT_URL, Json, Url

if TYPE_CHECKING:
    from holdfast.gateway.api import Api
    from holdfast.gateway.groups.shapes import PartitionGroupView
    from holdfast.gateway.identity.shapes import Groups

groups = typer.Typer(
    name="groups",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Groups of users and machines: create, list, delete, add, remove. Programs"
    " that share partitions: list, show, move, park, resume.",
)
roles = typer.Typer(
    name="roles",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Roles, which are named sets of permissions: create, list, delete, give, take.",
)

_GroupId = Annotated[str, typer.Argument(help="The id of a group.", metavar="GROUP")]
_RoleId = Annotated[str, typer.Argument(help="The id of a role.", metavar="ROLE")]
_Member = Annotated[str, typer.Argument(help="user:NAME or client:ID.", metavar="MEMBER")]
_Holder = Annotated[str, typer.Argument(help=OWNER_HELP.replace(" or role:ID", ""), metavar=OWNER)]
_Name = Annotated[str, typer.Option(help="What it is called.")]
_Description = Annotated[str, typer.Option(help="What it is for.")]


# --- groups -----------------------------------------------------------------------------------


@groups.command("create", epilog=examples("holdfast groups create ops --name 'On call'"))
def create_group(
    group_id: _GroupId,
    name: _Name = "",
    description: _Description = "",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a group without members.

    Groups of a signed token do not have to be created: grant permissions to their names.
    """
    _create("GROUP", group_id, name, description, url, json)


@groups.command("list", epilog=examples("holdfast groups list", "holdfast groups list --json"))
def list_groups(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all groups that you may see: of users, and of programs that share partitions."""
    from holdfast.cli.groups import print_groups
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    sharing = ask(url, _sharing)
    if json:
        from holdfast.engine.identity.values import OwnerType

        found = ask(url, lambda api: api.identity.groups(OwnerType.GROUP))
        print_json({"items": found.items, "partitionGroups": sharing})
        return
    _list("GROUP", "MEMBERS", "no groups of users" if sharing else "no groups", url, False)
    if sharing:
        print_line("")
        print_groups(sharing)


@groups.command("delete", epilog=examples("holdfast groups delete ops"))
def delete_group(group_id: _GroupId, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete a group with all its grants. Its members stay."""
    _delete("GROUP", group_id, url, json)


@groups.command(
    epilog=examples("holdfast groups add ops user:ann", "holdfast groups add ops client:robot")
)
def add(group_id: _GroupId, member: _Member, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Add a user or a machine to a group, with all permissions of the group."""
    _change_member("GROUP", group_id, member, True, url, json)


@groups.command(epilog=examples("holdfast groups remove ops user:ann"))
def remove(group_id: _GroupId, member: _Member, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Remove a user or a machine from a group."""
    _change_member("GROUP", group_id, member, False, url, json)


async def _sharing(api: "Api") -> "list[PartitionGroupView]":
    """Groups of programs; none for somebody who may not see them."""
    from holdfast.errors import Forbidden

    try:
        return await api.groups.groups()
    except Forbidden:
        return []


# --- roles ------------------------------------------------------------------------------------


@roles.command(
    "create", epilog=examples("holdfast roles create clerk --description 'starts and reads orders'")
)
def create_role(
    role_id: _RoleId,
    name: _Name = "",
    description: _Description = "",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a role that permits nothing yet: `holdfast permissions grant role:ID ...`."""
    _create("ROLE", role_id, name, description, url, json)


@roles.command("list", epilog=examples("holdfast roles list", "holdfast roles list --json"))
def list_roles(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all roles that you may see, with those who have them."""
    _list("ROLE", "GIVEN TO", "no roles", url, json)


@roles.command("delete", epilog=examples("holdfast roles delete clerk"))
def delete_role(role_id: _RoleId, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete a role with all its grants. Its members stay."""
    _delete("ROLE", role_id, url, json)


@roles.command(
    epilog=examples(
        "holdfast roles give clerk user:ann",
        "holdfast roles give worker client:robot",
        "holdfast roles give reader group:ops",
    )
)
def give(role_id: _RoleId, owner: _Holder, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Give a role to a user, a machine or a group."""
    _change_member("ROLE", role_id, owner, True, url, json)


@roles.command(epilog=examples("holdfast roles take clerk user:ann"))
def take(role_id: _RoleId, owner: _Holder, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Take a role from a user, a machine or a group."""
    _change_member("ROLE", role_id, owner, False, url, json)


# --- both -------------------------------------------------------------------------------------


def _create(type_: str, id_: str, name: str, description: str, url: str, as_json: bool) -> None:
    from holdfast.cli.remote import ask
    from holdfast.engine.identity.values import OwnerType
    from holdfast.gateway.identity.shapes import NewGroup

    new = NewGroup(id_, name, description)
    ask(url, lambda api: api.identity.create_group(OwnerType(type_), new))
    _print_state(type_, id_, "CREATED", as_json)


def _delete(type_: str, id_: str, url: str, as_json: bool) -> None:
    from holdfast.cli.remote import ask
    from holdfast.engine.identity.values import OwnerType

    ask(url, lambda api: api.identity.delete_group(OwnerType(type_), id_))
    _print_state(type_, id_, "DELETED", as_json)


def _change_member(type_: str, id_: str, who: str, is_added: bool, url: str, as_json: bool) -> None:
    from holdfast.cli.identity.words import owner_text, parse_owner
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask
    from holdfast.engine.identity.values import OwnerType
    from holdfast.gateway.identity.shapes import Member

    member = Member(*parse_owner(who))
    kind = OwnerType(type_)
    ask(
        url,
        lambda api: (
            api.identity.add_member(kind, id_, member)
            if is_added
            else api.identity.remove_member(kind, id_, member)
        ),
    )
    if as_json:
        print_json(
            {
                f"{type_.lower()}Id": id_,
                "memberType": member.member_type,
                "memberId": member.member_id,
                "state": "MEMBER_ADDED" if is_added else "MEMBER_REMOVED",
            }
        )
        return
    done = {
        ("GROUP", True): "is in group",
        ("GROUP", False): "is no longer in group",
        ("ROLE", True): "has role",
        ("ROLE", False): "no longer has role",
    }[type_, is_added]
    print_line(f"{owner_text(member.member_type, member.member_id)}  {done} {id_}")


def _list(type_: str, members: str, empty: str, url: str, as_json: bool) -> None:
    from holdfast.cli.identity.words import owner_text
    from holdfast.cli.output import print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.engine.identity.values import OwnerType

    found: Groups = ask(url, lambda api: api.identity.groups(OwnerType(type_)))
    if as_json:
        print_json(found)
        return
    print_table(
        ("ID", "NAME", "DESCRIPTION", members),
        (
            (
                each.id, each.name, each.description,
                ", ".join(owner_text(one.member_type, one.member_id) for one in each.members),
            )
            for each in found.items
        ),
        empty=empty,
    )  # fmt: skip


def _print_state(type_: str, id_: str, state: str, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line

    if as_json:
        print_json({f"{type_.lower()}Id": id_, "state": state})
    else:
        print_line(f"{id_}  {state.lower()}")
