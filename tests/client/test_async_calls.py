"""Every async form is called on an event loop, which is never blocked meanwhile."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import pytest
from test_async_forms import public_classes
from tests.cli.shell import Shell
from watchdog import Watchdog

from holdfast import GiveUpError, Holdfast, NotFound, Owned, Process, Unavailable

T = TypeVar("T")

SECONDS = 20.0


def async_forms() -> Iterator[tuple[type[Any], str, Any]]:
    """Each async form with its class and its name there."""
    for kind in public_classes():
        for name in dir(kind):
            if name.endswith("_async") and not name.startswith("_"):
                yield kind, name, inspect.getattr_static(kind, name)


def qualified(method: Any) -> str:
    return getattr(method, "__func__", method).__qualname__


@contextmanager
def noted() -> Iterator[set[str]]:
    """The async forms that are called meanwhile."""
    called: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for kind, name, method in list(async_forms()):
            patch.setattr(kind, name, _noting(method, called))
        yield called


def _noting(method: Any, called: set[str]) -> Any:
    inner = getattr(method, "__func__", method)

    @wraps(inner)
    def note(*args: Any, **named: Any) -> Any:
        called.add(qualified(method))
        return inner(*args, **named)

    return classmethod(note) if isinstance(method, classmethod) else note


def watched(story: Callable[[], Any]) -> None:
    """Runs a story on an event loop that must not be blocked."""

    async def run() -> list[str]:
        with Watchdog(asyncio.get_running_loop()) as watchdog:
            async with asyncio.timeout(3 * SECONDS):
                await story()
        return watchdog.blocked

    blocked = asyncio.run(run())
    assert not blocked, f"the loop was blocked {len(blocked)} times, first:\n{blocked[0]}"


async def until(ask: Callable[[], Awaitable[T]], is_there: Callable[[T], bool]) -> T:
    while True:
        if is_there(found := await ask()):
            return found
        await asyncio.sleep(0.01)


async def use_tasks(app: Holdfast) -> None:
    @app.task
    def double(number: int) -> int:
        return number * 2

    @app.task
    def fail() -> None:
        raise GiveUpError("no")

    @app.task
    async def triple(number: int) -> int:
        return number * 3

    assert await (await triple.submit_async(5)).result_async(SECONDS) == 15
    handle = await double.submit_async(21)
    assert await handle.result_async(SECONDS) == 42
    assert (await handle.view_async()).task_key == handle.key
    assert await (await double.bind(4).submit_async()).result_async(SECONDS) == 8
    many = await app.submit_many_async([double.bind(1), double.bind(2)])
    assert [await each.result_async(SECONDS) for each in many] == [2, 4]
    later = await app.submit_async(double.bind(3), delay=3600)
    await later.cancel_async()
    await app.schedule_async("nightly", double.bind(5), cron="0 3 * * *")
    await app.unschedule_async("nightly")
    async with app.transaction() as together:
        both = [together.submit(double.bind(6)), together.submit(double.bind(7))]
    assert [await each.result_async(SECONDS) for each in both] == [12, 14]

    await app.submit_many_async([fail.bind(), fail.bind()])
    found = await until(lambda: app.incidents_async("fail"), lambda found: len(found) == 2)
    await app.retry_incident_async(found[0].incident_key)
    await app.discard_incident_async(found[1].incident_key)


async def use_workers(app: Holdfast) -> None:
    worker = app.worker(name="mine", tasks=["double"])
    running = asyncio.create_task(worker.run_async())
    await asyncio.sleep(0.05)
    await worker.stop_async()
    await running


async def use_processes(app: Holdfast) -> None:
    process = Process("order").wait("paid", message="payment", key="number").end("done")
    [deployed] = await app.deploy_async(process)
    [found] = await app.definitions_async("order")
    assert found.process_definition_key == deployed.process_definition_key
    handle = await app.start_async("order", {"number": 1})
    assert [each.process_instance_key for each in await app.instances_async("order")] == [
        handle.key
    ]
    await handle.set_variables_async({"note": "x"})
    await app.publish_async("payment", 1)
    assert (await handle.result_async(SECONDS))["note"] == "x"
    await use_changes(app, deployed)


async def use_changes(app: Holdfast, deployed: Any) -> None:
    moved, canceled = await app.start_many_async("order", [{"number": 2}, {"number": 3}])
    await canceled.cancel_async()
    assert (await moved.view_async()).process_instance_key == moved.key
    await moved.migrate_async(deployed)
    await moved.modify_async(move={"paid": "done"})
    assert (await moved.result_async(SECONDS))["number"] == 2


async def use_content(app: Holdfast, folder: Path) -> None:
    (folder / "site").mkdir()
    (folder / "site" / "home.html").write_text("hello")
    async with await app.publisher_async("site", folder / "site") as site:
        opened = await app.subscriber_async("east", of="site", into=folder / "east", editable=True)
        async with opened as east:
            first = await site.add_async("/")
            await east.wait_until_idle_async(SECONDS)
            assert (folder / "east" / "home.html").read_text() == "hello"
            await use_queues(site, first.offset)
        await site.test_async()
        await site.delete_async("/home.html")
        await site.invalidate_async("/home.html")
    assert [each.publisher for each in await app.publishers_async()] == ["site"]
    await site.close_async()
    await east.close_async()


async def use_queues(site: Any, offset: int) -> None:
    queue = site.queue("east")
    await until(site.subscribers_async, bool)
    await until(queue.length_async, lambda length: length == 0)
    assert [each async for each in queue] == [] and await queue.head_async() is None
    assert await site.errors_async("east") == []
    assert (await site.farm_async()).publisher == "site"
    await site.clear_async("east", up_to=offset)
    with pytest.raises(NotFound, match="offset"):
        await site.remove_async("east", offset)
    with pytest.raises(NotFound, match="offset"):
        await site.retry_async("east", offset)
    assert [each.offset async for each in site.events_async()] in ([], [offset])


async def use_groups(app: Holdfast) -> None:
    committed = asyncio.Event()
    here = asyncio.get_running_loop()

    async def run(owned: Owned) -> None:
        owned.commit(1)
        await owned.flush_async(SECONDS)
        here.call_soon_threadsafe(committed.set)
        await owned.leaving()

    group = await app.group("devices", partitions=["a"], run=run).start_async()
    await group.declare_async(["b"])
    await committed.wait()
    await group.stop_async()


def test_no_async_form_of_an_embedded_node_blocks_the_loop(tmp_path: Path) -> None:
    async def story() -> None:
        app = await Holdfast.open_async(tmp_path / "data")
        await use_tasks(app)
        await use_workers(app)
        await use_processes(app)
        await use_content(app, tmp_path)
        await use_groups(app)
        assert (await app.console_async()).startswith("http://127.0.0.1:")
        await app.close_console_async()
        await app.close_async()

    with noted() as called:
        watched(story)
    forms = {qualified(method) for _, _, method in async_forms()}
    assert forms - called == {"Holdfast.connect_async"}


def test_no_async_form_over_http_blocks_the_loop(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.serve_node(partitions=1)

    async def story() -> None:
        async with Holdfast.connect_async(shell.url) as app:
            await use_processes(app)
            assert await app.publishers_async() == []

    try:
        watched(story)
    finally:
        shell.close()


def test_an_app_closes_at_the_end_of_async_with_while_the_loop_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with Holdfast.open_async(tmp_path) as app:
            pass
        with pytest.raises(Unavailable, match="closed"):
            await app.incidents_async()
        again = await asyncio.to_thread(Holdfast.open, tmp_path)
        async with again as opened:
            assert await opened.incidents_async() == []
        with pytest.raises(Unavailable, match="closed"):
            await again.incidents_async()

    watched(story)


def test_an_app_whose_opening_is_cancelled_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        opening = asyncio.ensure_future(_opened(tmp_path))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(story())  # waits for the thread
    Holdfast.open(tmp_path).close()  # else the folder would be in use


async def _opened(folder: Path) -> Holdfast:
    return await Holdfast.open_async(folder)


def test_the_watchdog_notices_a_loop_that_is_blocked() -> None:
    async def story() -> None:
        with Watchdog(asyncio.get_running_loop()) as watchdog:
            await asyncio.sleep(0.1)
            assert watchdog.blocked == []
            await asyncio.get_running_loop().run_in_executor(None, _block)
            assert watchdog.blocked == []
            _block()
            await asyncio.sleep(0.02)
        assert len(watchdog.blocked) == 1 and "_block" in watchdog.blocked[0]

    asyncio.run(story())


def _block() -> None:
    import time

    time.sleep(0.15)
