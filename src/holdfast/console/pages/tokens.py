"""Tokens of machines, and who is signed in to the console."""

from holdfast.console.forms import whole
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.identity.shapes import NewToken, TokenReceipt
from holdfast.limits import CONSOLE_LIST_ITEMS

_R, _P = ResourceType, Permission
_READ = one(_R.TOKEN, _P.READ)
_CREATE = one(_R.TOKEN, _P.CREATE)
_DELETE = one(_R.TOKEN, _P.DELETE)
_HOME = "/console/tokens"
_DAY_MS = 86_400_000


async def show(ask: PageAsk) -> PageReply:
    """Tokens page by page, and sessions; neither can be had from what is shown."""
    return await _page(ask, None)


async def _page(ask: PageAsk, created: TokenReceipt | None) -> PageReply:
    client, after = ask.query.get("client", ""), ask.query.get("after", "")
    tokens = [each for each in (await ask.api.identity.tokens()).items if client in each.client_id]
    left = [each for each in tokens if each.token_id > after]
    items = left[:CONSOLE_LIST_ITEMS]
    sessions = (await ask.api.identity.sessions()).items
    deletable = {
        each.token_id for each in items if await ask.may_with(_DELETE, each.client_id)
    } | {
        each.session_id for each in sessions if await ask.may_with(_DELETE, each.owner_id)
    }  # fmt: skip
    return await ask.show(
        "tokens.html",
        items=items,
        total=len(tokens),
        after=items[-1].token_id if len(left) > len(items) else None,
        sessions=sessions[:CONSOLE_LIST_ITEMS],
        sessions_total=len(sessions),
        created=created,
        may_create=await ask.may(_CREATE),
        deletable=deletable,
    )


async def create(ask: PageAsk) -> PageReply:
    """A new token: the page that answers shows it, and no other page ever does."""
    days = whole(ask, "days") or 0
    receipt = await ask.api.identity.create_token(NewToken(ask.wanted("client"), days * _DAY_MS))
    if await ask.may(_READ):
        return await _page(ask, receipt)
    return await ask.show(
        "tokens.html", items=[], total=0, after=None, sessions=[], sessions_total=0,
        created=receipt, may_create=True, deletable=set(),
    )  # fmt: skip


async def delete(ask: PageAsk) -> PageReply:
    """Requests with it are refused from now on."""
    await ask.api.identity.delete_token(ask.wanted("id"))
    return ask.go(_HOME, "Requests with it are refused from now on.")


PAGES = (
    ConsolePage(_HOME, "Tokens", show, _READ, "Access"),
    ConsolePage(_HOME, "Create a token", create, _CREATE, method="POST"),
    ConsolePage(f"{_HOME}/delete", "Delete a token", delete, _DELETE, method="POST"),
)
