"""How many modules one operation goes through, from the remote client to the record and back."""

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from tests.gateway.fake_tables import FakeTables

import holdfast
from holdfast.client.remote import RemoteApi
from holdfast.clock import SystemClock
from holdfast.engine.batch.values import BatchOperationType
from holdfast.gateway.batch.shapes import NewBatchOperation
from holdfast.gateway.http import HttpServer
from holdfast.testing import MemoryNode

ROOT = Path(holdfast.__file__).parent
OUTSIDE = ("client", "gateway")  # of the partitions: what an operation is declared and served by
OUTSIDE_MAX = 11


async def walked(call: Awaitable[Any]) -> set[str]:
    """The modules in which a function was called until the answer was there."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        await call
    finally:
        sys.setprofile(None)
    paths = (Path(each) for each in found)
    return {str(each.relative_to(ROOT)) for each in paths if each.is_relative_to(ROOT)}


def test_an_operation_goes_through_few_modules() -> None:
    async def run() -> set[str]:
        tables = FakeTables()
        tables.keys = [(1 << 51) + each for each in range(1, 100)]
        node = await MemoryNode(partitions=1, open_tables=tables.open, clock=SystemClock()).start()
        server = HttpServer(node.gateway)
        await server.start()
        api = RemoteApi(server.url)
        try:
            new = NewBatchOperation(
                type=BatchOperationType.RETRY_TASK, filter=msgspec.Raw(b'{"a":1}'), throttle=1
            )
            first, second = [(await api.batches.create(new)).batch_operation_key for _ in "ab"]
            assert first and second
            node.node.runtime.batches.stop()  # what goes on beside it is no part of the walk
            await api.batches.suspend(first)  # what is loaded and made once is there now
            return await walked(api.batches.suspend(second))
        finally:
            await api.close()
            await server.close()
            await node.close()

    modules = sorted(asyncio.run(run()))
    outside = [each for each in modules if each.startswith(OUTSIDE)]
    print(f"\n{len(outside)} of {len(modules)} modules are outside of the partitions:")
    print(*modules, sep="\n")
    assert len(outside) <= OUTSIDE_MAX, outside
