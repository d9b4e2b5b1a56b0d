"""A new batch operation: which items, a dry run that counts them, and the start.

Any list links here, `/console/batches/new?do=RETRY_TASK&type=charge&state=INCIDENT`: `do` is the
type of the operation, `filter` a whole filter as JSON, and every other field a condition of the
filter, by the name that the API has for it. A value that begins with `{` is an object of operators.
"""

import json
from typing import Any

import msgspec

from holdfast.console.forms import json_of, whole
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import Forbidden, HoldfastError, InvalidArgument
from holdfast.gateway.access.needs import of_batch
from holdfast.gateway.batch.shapes import NewBatchOperation
from holdfast.gateway.http.problems import problem_of
from holdfast.gateway.processes.shapes import NewMigration, NewModification
from holdfast.gateway.rest.tables import TablesMissing

_T = BatchOperationType
_CREATE = of_batch()
_TEMPLATE = "batch_new.html"
WORDS = {
    _T.RETRY_TASK: "Retry tasks that wait for a person",
    _T.DISCARD_TASK: "Discard tasks that wait for a person",
    _T.RESOLVE_INCIDENT: "Resolve incidents",
    _T.CANCEL_PROCESS_INSTANCE: "Cancel process instances",
    _T.MIGRATE_PROCESS_INSTANCE: "Move process instances to another version",
    _T.MODIFY_PROCESS_INSTANCE: "Move tokens in process instances",
    _T.DELETE_PROCESS_INSTANCE: "Delete process instances that have ended",
}


def filter_in(query: Any) -> dict[str, Any]:
    """The filter that an address asks for."""
    wanted = json_of(query["filter"], "filter") if "filter" in query else {}
    if not isinstance(wanted, dict):
        raise InvalidArgument("Expected a JSON object for filter, but found other JSON")
    for name, value in query.items():
        if name not in ("do", "filter"):
            wanted[name] = json_of(value, name) if value.startswith("{") else value
    return wanted


async def show(ask: PageAsk) -> PageReply:
    """The form, filled with what a list asks for."""
    type_ = ask.query.get("do", "")
    if type_ and type_ not in list(_T):
        raise InvalidArgument(
            f"Expected one of {', '.join(_T)} for do, but found {type_!r}", field="do"
        )
    wanted = filter_in(ask.query)
    text = json.dumps(wanted, indent=2, ensure_ascii=False) if wanted else ""
    return await _form(ask, type_, text, {})


async def _form(ask: PageAsk, type_: str, filter_: str, form: Any, **shown: Any) -> PageReply:
    permitted = [each for each in WORDS if await ask.may(of_batch(each))]
    return await ask.show(
        _TEMPLATE,
        words=WORDS,
        types=permitted,
        type=type_,
        filter=filter_,
        form=form,
        has_tables=await _has_tables(ask),
        preview=shown.get("preview"),
        problem=shown.get("problem"),
    )


async def _has_tables(ask: PageAsk) -> bool:
    try:
        await ask.api.tables.search("batch_operations", {}, [], {"limit": 0})
    except TablesMissing:
        return False
    except Forbidden:  # but they are there
        return True
    return True


async def preview(ask: PageAsk) -> PageReply:
    """What the operation would do; the page has the form again, with what was found."""
    try:
        receipt = await ask.api.batches.create(_asked(ask, dry_run=True))
        found: dict[str, Any] = {"preview": receipt.preview, "problem": None}
    except HoldfastError as error:
        found = {"preview": None, "problem": problem_of(error, "", ask.path)[0]}
    type_, filter_ = ask.form.get("do", ""), ask.form.get("filter", "")
    if ask.is_part:
        return await ask.part(
            _TEMPLATE, "outcome", words=WORDS, type=type_, filter=filter_, form=ask.form, **found
        )
    return await _form(ask, type_, filter_, ask.form, **found)


async def create(ask: PageAsk) -> PageReply:
    """Starts it."""
    receipt = await ask.api.batches.create(_asked(ask))
    return ask.go(f"/console/batches/{receipt.batch_operation_key}", "The operation is started.")


def _asked(ask: PageAsk, *, dry_run: bool = False) -> NewBatchOperation:
    """What the form asks for."""
    do = ask.wanted("do")
    if do not in list(_T):
        raise InvalidArgument(f"Expected a type of operations, but found {do!r}", field="do")
    filter_ = json_of(ask.wanted("filter"), "filter")
    return NewBatchOperation(
        type=_T(do),
        filter=msgspec.Raw(json.dumps(filter_).encode()),
        modification=_plan(ask, NewModification) if do == _T.MODIFY_PROCESS_INSTANCE else None,
        migration=_plan(ask, NewMigration) if do == _T.MIGRATE_PROCESS_INSTANCE else None,
        retries=whole(ask, "retries") or 0,
        throttle=whole(ask, "throttle") or 0,
        priority=whole(ask, "priority") or 0,
        dry_run=dry_run,
    )


def _plan(ask: PageAsk, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(ask.wanted("plan"), type=shape)
    except msgspec.MsgspecError as error:
        raise InvalidArgument(f"Expected a plan, but {error}", field="plan") from error


PAGES = (
    ConsolePage("/console/batches/new", "New batch operation", show, _CREATE),
    ConsolePage("/console/batches/new", "New batch operation", create, _CREATE, method="POST"),
    ConsolePage("/console/batches/preview", "Dry run", preview, _CREATE, method="POST"),
)
