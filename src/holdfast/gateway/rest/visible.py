"""The tables as the asker may see them: rows of others are left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.engine.identity.queries import FindAllowed
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden
from holdfast.gateway.access.asking import Asked, asker_now, is_asker
from holdfast.gateway.rest.tables import FoundRows, Row, SearchTables

Right = tuple[ResourceType, Permission]

_DEFINITION: Right = (ResourceType.PROCESS_DEFINITION, Permission.READ_PROCESS_DEFINITION)
_INSTANCE: Right = (ResourceType.PROCESS_DEFINITION, Permission.READ_PROCESS_INSTANCE)
_TASK: Right = (ResourceType.TASK, Permission.READ)

# A row is visible to an asker who may see what one of these columns names. Incidents are those of
# a process, or of a plain task.
_COLUMNS: dict[str, dict[str, Right]] = {
    "process_definitions": {"process_id": _DEFINITION},
    "process_instances": {"process_id": _INSTANCE},
    "element_instances": {"process_id": _INSTANCE},
    "incidents": {"process_id": _INSTANCE, "type": _TASK},
    "jobs": {"type": _TASK},
    "variables": {},
}
_FIELDS = {"process_id": "processId", "type": "type"}
# Rows that only say which instance they are of: an asker who may not see all has to name one.
_OF_INSTANCES = ("jobs", "variables")
_ITEMS = "batch_operation_items"


class VisibleTables:
    """The port of the tables, filtered by what the asker may see."""

    def __init__(self, tables: SearchTables, asked: Asked) -> None:
        self._tables = tables
        self._asked = asked

    async def search(
        self,
        table: str,
        filter: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        """A page of the rows that meet a filter and may be seen."""
        if await self._sees_all(table):
            return await self._tables.search(table, filter, sort, page)
        if table == _ITEMS:
            return await self._items(filter, sort, page)
        key = _key_in(filter, "processInstanceKey") if table in _OF_INSTANCES else None
        if key is not None and key in await self.rows("process_instances", [key]):
            return await self._tables.search(table, filter, sort, page)
        bounds = [
            {_FIELDS[name]: {"$exists": True} if allowed is None else {"$in": sorted(allowed)}}
            for name, allowed in await self._allowed(table)
            if allowed is None or allowed
        ]
        if bounds:
            return await self._tables.search(table, _bounded(filter, bounds), sort, page)
        if key is None and table in _OF_INSTANCES:
            raise Forbidden(
                f"Expected processInstanceKey in a filter of {table}: you may not see them all"
            )
        return FoundRows([], 0, False)

    async def _items(
        self,
        filter_: Mapping[str, Any],
        sort: Sequence[Mapping[str, Any]],
        page: Mapping[str, Any],
    ) -> FoundRows:
        """Items of an operation that the asker created: it chose from what the asker may see."""
        key = _key_in(filter_, "batchOperationKey")
        if key is None:
            raise Forbidden(
                "Expected batchOperationKey of an operation of yours in a filter of its items:"
                " you may not see them all"
            )
        row = (await self._tables.rows("batch_operations", [key])).get(key)
        if row is None or not (row["actor"] and row["actor_type"]):
            return FoundRows([], 0, False)
        if not is_asker({"sub": row["actor"], "type": row["actor_type"]}):
            return FoundRows([], 0, False)
        return await self._tables.search(_ITEMS, filter_, sort, page)

    async def rows(self, table: str, keys: Sequence[int]) -> dict[int, Row]:
        """The rows of some keys that may be seen."""
        found = await self._tables.rows(table, keys)
        if await self._sees_all(table):
            return found
        assert table != _ITEMS, "items are searched for, not looked up"
        bounds = await self._allowed(table)
        return {
            key: row
            for key, row in found.items()
            if any(
                row[name] is not None and (allowed is None or row[name] in allowed)
                for name, allowed in bounds
            )
        }

    def close(self) -> None:
        self._tables.close()

    async def _allowed(self, table: str) -> list[tuple[str, frozenset[str] | None]]:
        """By column: what may be seen of what it names; None is all."""
        columns = _COLUMNS[table]
        allowed = await self._asked.ask_any(FindAllowed(tuple(columns.values())))
        return list(zip(columns, allowed, strict=True))

    async def _sees_all(self, table: str) -> bool:
        """Whether there is nothing to leave out."""
        if table == _ITEMS:
            return await self._has_all(_INSTANCE, _TASK)
        if table not in _COLUMNS:  # batch operations and the like: the endpoint's need is enough
            return True
        rights = {*_COLUMNS[table].values(), _INSTANCE} - (
            {_INSTANCE} if table == "process_definitions" else set()
        )
        return await self._has_all(*rights)

    async def _has_all(self, *rights: Right) -> bool:
        if asker_now() is None:
            return True
        return not any(each is not None for each in await self._asked.ask_any(FindAllowed(rights)))


def _key_in(filter_: Mapping[str, Any], field: str) -> int | None:
    """The one key of a field that a filter is about."""
    asked = filter_.get(field)
    if isinstance(asked, Mapping):
        asked = asked.get("$eq")
    return int(asked) if isinstance(asked, int | str) and str(asked).isdecimal() else None


def _bounded(filter_: Mapping[str, Any], bounds: list[dict[str, Any]]) -> dict[str, Any]:
    """A filter and any of the bounds: fields are met together, and only $or has alternatives."""
    whole = {"$or": [filter_]} if filter_ else {}
    return {"$or": [whole | bound for bound in bounds]}
