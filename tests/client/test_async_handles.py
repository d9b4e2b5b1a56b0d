"""What a handle or a task does has a form for an event loop, with the same signature."""

import asyncio
import inspect
from pathlib import Path

import pytest

from holdfast import BoundTask, Handle, Holdfast, Process, ProcessHandle, Task, TaskFailed

# What neither asks a node nor waits.
_AT_ONCE = {"bind", "handle", "name", "new_task", "with_headers"}


@pytest.mark.parametrize("kind", [Handle, ProcessHandle, Task, BoundTask])
def test_what_calls_the_node_has_an_async_form_of_the_same_signature(kind: type) -> None:
    public = {name for name in vars(kind) if not name.startswith("_")} - _AT_ONCE
    plain = {name for name in public if not name.endswith("_async")}
    assert plain and {f"{name}_async" for name in plain} == public - plain
    for name in plain:
        other = getattr(kind, f"{name}_async")
        assert inspect.iscoroutinefunction(other)
        assert inspect.signature(getattr(kind, name)) == inspect.signature(other)


def test_a_program_on_an_event_loop_submits_asks_and_cancels(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path, workers=1) as app:

        @app.task
        async def double(number: int) -> int:
            return 2 * number

        async def program() -> None:
            handle = await double.submit_async(21)
            assert await handle.result_async(timeout=10) == 42
            later = await double.bind(1).submit_async(key="later", delay=3_600)
            assert not (await double.bind(1).submit_async(key="later")).created
            assert (await later.view_async()).state == "SCHEDULED"
            await later.cancel_async()
            assert (await double.handle(later.key).view_async()).state == "CANCELED"

        asyncio.run(program())


def test_a_program_on_an_event_loop_changes_an_instance(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path, workers=0) as app:
        [first] = app.deploy(Process("order").task("pack").task("ship"))

        async def program() -> None:
            order = await app.start_async("order", {"total": 5})
            await order.set_variables_async({"total": 6})
            await order.modify_async(activate=["ship"], terminate=["pack"])
            [element] = (await order.view_async()).elements
            assert element.element_id == "ship"
            [second] = app.deploy(Process("order").task("pack").task("ship").task("thank"))
            await order.migrate_async(second)
            assert (await order.view_async()).version == second.version > first.version
            await order.cancel_async()
            with pytest.raises(TaskFailed, match="CANCELED"):
                await order.result_async(timeout=5)

        asyncio.run(program())
