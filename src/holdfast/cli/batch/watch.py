"""A batch operation that was begun from the command line: what it would do, or how it goes on."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import typer

from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.output import number, print_json, print_line, print_note
from holdfast.cli.remote import ask
from holdfast.engine.batch.values import BatchOperationState
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from holdfast.gateway.api import Api
    from holdfast.gateway.batch.shapes import (
        BatchOperationReceipt,
        BatchOperationView,
        BatchPreview,
    )

_LOOK_SECONDS = 0.2
_S = BatchOperationState
_ON_ITS_WAY = {
    "STARTING": "the pipeline is starting; waiting for it",
    "CATCHING_UP": "the tables are catching up with the log; waiting for them",
}
_ENDED = (_S.COMPLETED, _S.PARTIALLY_COMPLETED, _S.FAILED)

Show = Callable[["BatchOperationView"], None]


def ask_patiently(
    url: str, question: Callable[["Api"], Awaitable["BatchOperationReceipt"]]
) -> "BatchOperationReceipt":
    """Asks again as long as the pipeline is on its way, and says so once."""
    told = ""
    while True:
        try:
            return ask(url, question)
        except Unavailable as error:
            doing = error.fields.get("pipeline")
            if doing not in _ON_ITS_WAY:
                raise
            if doing != told:
                told = doing
                print_note(_ON_ITS_WAY[doing])


def follow(receipt: "BatchOperationReceipt", url: str, *, as_json: bool, waits: bool) -> None:
    """Tells of a dry run, or watches an operation to its end if that is wanted."""
    key = receipt.batch_operation_key
    if receipt.preview is not None:
        _tell_preview(receipt, receipt.preview, as_json)
    elif key is None or not waits:
        print_json(receipt) if as_json else print_line(f"{key}  CREATED")
    else:
        watch(key, url, as_json=as_json)


def watch(key: str, url: str, *, as_json: bool) -> None:
    """Shows how far an operation is until it ends; its outcome is the exit code."""
    if not as_json:
        print_note(f"batch operation {key}")
    try:
        with _bar(as_json) as show:
            end = ask(url, lambda api: _end(api, key, show))
    except KeyboardInterrupt:
        print_note(f"it continues: holdfast batch show {key}, holdfast batch abort {key}")
        raise
    if as_json:
        print_json(end)
    else:
        print_line(f"{key}  {end.state}: {outcomes(end)}")
        for each in end.errors:
            print_note(f"partition {each.partition_id}: {each.message}")
        if end.operations_failed_count:
            print_note(f"why: holdfast batch items {key} --state FAILED")
    if end.state is not _S.COMPLETED:
        raise typer.Exit(ExitCode.TASK_FAILED)


def outcomes(view: "BatchOperationView") -> str:
    """How many items have which outcome; what there is none of is not said."""
    counts = (
        ("completed", view.operations_completed_count),
        ("failed", view.operations_failed_count),
        ("skipped", view.operations_skipped_count),
        ("canceled", view.operations_canceled_count),
    )
    said = [f"{number(count)} {name}" for name, count in counts if count]
    return ", ".join(said) or "no items"


async def _end(api: "Api", key: str, show: Show) -> "BatchOperationView":
    while True:
        view = await api.batches.get(key)
        show(view)
        if view.end_date is not None or view.state in _ENDED:
            return view
        await asyncio.sleep(_LOOK_SECONDS)


def _bar(as_json: bool) -> AbstractContextManager[Show]:
    """A bar that moves, if somebody watches."""
    if as_json or not sys.stderr.isatty():
        return nullcontext(lambda _: None)
    from holdfast.cli.batch.bar import Bar

    return Bar()


def _tell_preview(receipt: "BatchOperationReceipt", preview: "BatchPreview", as_json: bool) -> None:
    if as_json:
        print_json(receipt)
        return
    print_line(f"{number(preview.items)} would be chosen; nothing was done")
    for each in preview.partitions:
        print_line(f"partition {each.partition_id}  {number(each.items)}")
    if preview.sample:
        print_line(f"such as {', '.join(preview.sample)}")
