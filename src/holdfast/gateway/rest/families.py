"""Which instance called which: the tables know the element that called, and what that is of."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.gateway.rest.common import SearchQuery
from holdfast.gateway.rest.fields import KEY, Schema
from holdfast.gateway.rest.tables import Row, SearchTables
from holdfast.limits import CALL_DEPTH_MAX, PAGE_ITEMS_MAX

_FIELD = "parentProcessInstanceKey"
PARENT: dict[str, Schema] = {_FIELD: KEY}


class InstanceFamily(msgspec.Struct, frozen=True):
    """Where an instance comes from."""

    parent: str | None
    parent_element: str | None
    root: str | None


async def family_of(tables: SearchTables, rows: Sequence[Row]) -> dict[int, InstanceFamily]:
    """Where the instances of some rows come from, by their keys."""
    above: dict[int, int] = {}  # an instance, and the one that called it
    callers = {row["process_instance_key"]: row["parent_element_instance_key"] for row in rows}
    looked = dict(callers)
    for _ in range(CALL_DEPTH_MAX + 1):
        calling = {key: element for key, element in looked.items() if element}
        if not calling:
            break
        elements = await tables.rows("element_instances", list(calling.values()))
        for key, element in calling.items():
            if (found := elements.get(element)) is not None:
                above[key] = found["process_instance_key"]
        parents = {above[key] for key in calling if key in above}
        instances = await tables.rows("process_instances", list(parents - above.keys()))
        looked = {key: row["parent_element_instance_key"] for key, row in instances.items()}
    return {
        key: InstanceFamily(
            str(above[key]) if key in above else None,
            str(element) if element else None,
            str(_top(above, key)) if key in above or not element else None,
        )
        for key, element in callers.items()
    }


def _top(above: dict[int, int], key: int) -> int:
    while key in above:
        key = above[key]
    return key


async def by_parent(tables: SearchTables, query: SearchQuery) -> tuple[SearchQuery, dict[str, Any]]:
    """`parentProcessInstanceKey` as a filter: by the elements of the parent that called."""
    if _FIELD not in query.filter:
        return query, {}
    rest = {name: asked for name, asked in query.filter.items() if name != _FIELD}
    asked = query.filter[_FIELD]
    asked = asked.get("$eq") if isinstance(asked, dict) and len(asked) == 1 else asked
    if not isinstance(asked, str):
        raise InvalidArgument(
            f"Expected the key of one instance for {_FIELD}, but found {asked!r}", field=_FIELD
        )
    wanted = {"processInstanceKey": asked, "type": "CALL"}
    calls = await tables.search("element_instances", wanted, [], {"limit": PAGE_ITEMS_MAX})
    if calls.total > PAGE_ITEMS_MAX:
        raise InvalidArgument(
            f"Expected at most {PAGE_ITEMS_MAX} calls of instance {asked}, but found"
            f" {calls.total}; search for their parentElementInstanceKey",
            field=_FIELD,
        )
    keys = [str(row["element_instance_key"]) for row in calls.rows]
    changed = msgspec.structs.replace(query, filter=rest)
    return changed, {"parentElementInstanceKey": {"$in": keys}}
