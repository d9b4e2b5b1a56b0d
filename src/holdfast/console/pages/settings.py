"""The settings of the node: their values without secrets, and where each comes from."""

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one

_READ = one(ResourceType.SYSTEM, Permission.READ)
_DEFAULT = "default"


async def show(ask: PageAsk) -> PageReply:
    """All of them, or those that differ from their defaults."""
    found = (await ask.api.node.settings()).items
    name = ask.query.get("name", "")
    is_changed = ask.query.get("show") == "changed"
    items = [
        each
        for each in found
        if name in each.name and not (is_changed and each.source == _DEFAULT)
    ]  # fmt: skip
    changed = sum(each.source != _DEFAULT for each in found)
    return await ask.show("settings.html", items=items, changed=changed)


PAGES = (ConsolePage("/console/settings", "Settings", show, _READ, "Node"),)
