"""A call whose first step runs without a task, in the thread of its caller."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
from tests.client.lent_portals import in_threads, is_idle, portal, until

from holdfast import Holdfast
from holdfast.errors import NotFound

_named: ContextVar[str] = ContextVar("named", default="nobody")


async def tasks_now(name: str = "answer") -> tuple[str, object]:
    return name, asyncio.current_task()


async def paused(name: str) -> tuple[str, str, object]:
    token = _named.set(name)
    try:
        await asyncio.sleep(0.001)
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        return name, _named.get(), asyncio.current_task()
    finally:
        _named.reset(token)


def test_what_does_not_wait_gets_no_task() -> None:
    with portal() as (opened, _):
        assert opened.call(tasks_now(), at_once=True) == ("answer", None)
        name, task = opened.call(tasks_now())
        assert name == "answer" and task is not None


def test_what_has_to_wait_goes_on_in_a_task_and_in_its_context() -> None:
    with portal() as (opened, _):
        name, in_context, task = opened.call(paused("ann"), at_once=True)
        assert (name, in_context) == ("ann", "ann") and task is not None
        assert _named.get() == "nobody"


def test_an_error_of_the_first_step_is_the_caller_s() -> None:
    async def fails() -> None:
        raise NotFound("no such thing")

    with portal() as (opened, loop):
        with pytest.raises(NotFound, match="no such thing"):
            opened.call(fails(), at_once=True)
        until(lambda: is_idle(loop))
        assert opened.call(tasks_now(), at_once=True) == ("answer", None)


def test_what_is_in_the_queue_runs_first() -> None:
    order: list[str] = []

    async def call() -> None:
        order.append("call")

    with portal() as (opened, loop):
        begin: Callable[..., Any] = loop._run_lent

        def with_something_before(*args: Any) -> None:
            loop.call_soon(order.append, "queued")
            begin(*args)

        loop._run_lent = with_something_before  # type: ignore[method-assign]
        opened.call(call(), at_once=True)
        assert order == ["queued", "call"]


def test_what_comes_while_another_thread_runs_the_loop_wakes_its_own() -> None:
    answers: list[tuple[str, object]] = []

    def ask(_: int) -> None:
        answers.append(opened.call(tasks_now(), at_once=True))

    async def first() -> list[threading.Thread]:
        await asyncio.sleep(0)  # it goes on in a task
        others = in_threads(1, ask)
        until(lambda: loop._ready)  # it could not run the loop itself
        await asyncio.sleep(0.1)  # nothing else is in the queue then
        return others

    with portal() as (opened, loop):
        [other] = opened.call(first(), at_once=True)
        other.join(10)
        assert not other.is_alive()
        [(name, task)] = answers
        assert name == "answer" and task is not None


def test_an_app_submits_without_a_task_unless_hooks_may_ask_for_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    with Holdfast.open(tmp_path, workers=0) as app:

        @app.task
        def nothing() -> None: ...

        nothing.submit()  # asks what is known of its type
        made: list[object] = []
        create_task = app.portal.loop.create_task

        def noted(call: Coroutine[Any, Any, Any], **named: Any) -> Any:
            made.append(call)
            return create_task(call, **named)

        monkeypatch.setattr(app.portal.loop, "create_task", noted)
        until(lambda: is_idle(app.portal.loop))
        nothing.submit()
        assert not made

        class Timed:
            async def on_submit(self, new: object) -> None:
                async with asyncio.timeout(10):
                    await asyncio.sleep(0)

        app.middleware(Timed())
        until(lambda: is_idle(app.portal.loop))
        nothing.submit()
        assert len(made) == 1
