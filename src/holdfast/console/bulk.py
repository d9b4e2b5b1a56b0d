"""From a list to a batch operation: what its visitor may do with all that it shows."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from holdfast.console.page import PageAsk
from holdfast.engine.batch.values import BatchOperationType
from holdfast.gateway.access.needs import of_batch

_T = BatchOperationType
_LABELS = {
    _T.RETRY_TASK: "Retry all",
    _T.DISCARD_TASK: "Discard all",
    _T.RESOLVE_INCIDENT: "Retry all",
    _T.CANCEL_PROCESS_INSTANCE: "Cancel all",
    _T.MIGRATE_PROCESS_INSTANCE: "Migrate all",
    _T.MODIFY_PROCESS_INSTANCE: "Move tokens of all",
    _T.DELETE_PROCESS_INSTANCE: "Delete all",
}


class BulkOffer(NamedTuple):
    """A link to the form of a batch operation, filled with the filter of a list."""

    label: str
    path: str


async def offers(
    ask: PageAsk, filter_: Mapping[str, Any], *types: BatchOperationType
) -> list[BulkOffer]:
    """What may be done with everything that fits a filter; nothing for a filter that fits all."""
    wanted = {name: value for name, value in filter_.items() if value is not None}
    if not wanted:
        return []
    text = json.dumps(wanted, ensure_ascii=False, default=str)
    return [
        BulkOffer(_LABELS[each], f"/console/batches/new?{urlencode({'do': each, 'filter': text})}")
        for each in types
        if await ask.may(of_batch(each))
    ]
