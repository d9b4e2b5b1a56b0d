"""A handle on a submitted task: its key, its state and its result."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from holdfast.client.patience import no_later_than, over_after, persistently
from holdfast.client.views import TaskDetails, task_details
from holdfast.engine.jobs.values import JobState
from holdfast.errors import (
    DeadlineExceeded,
    HoldfastError,
    InvalidState,
    NotFound,
    TaskFailed,
    raised_line,
)
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import TaskOutcome
from holdfast.limits import WAIT_MS_MAX

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast

R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """A durable task. Any program gets a handle on it by its key: `app.handle(key)`."""

    def __init__(
        self, app: "Holdfast", key: str, decode: Callable[[Any], R_co], created: bool = True
    ) -> None:
        self.key = key
        self.created = created  # False: a task with this idempotency key existed already
        self._app = app
        self._decode = decode

    def __repr__(self) -> str:
        return f"Handle(key={self.key!r})"

    def result(self, timeout: float | None = None) -> R_co:
        """Waits for the result; TaskFailed if the task ended, or is stuck, without one."""
        self._app.begin()
        return self._app.portal.call(self._result(timeout), waits=True)

    async def result_async(self, timeout: float | None = None) -> R_co:
        """Like `result`, for an event loop."""
        self._app.begin()
        return await self._app.portal.reach(self._result(timeout))

    def view(self) -> TaskDetails:
        """The task's state, payload, times and error."""
        return self._app.portal.call(self._view())

    async def view_async(self) -> TaskDetails:
        """Like `view`, for an event loop."""
        return await self._app.portal.reach(self._view())

    async def _view(self) -> TaskDetails:
        return task_details(await self._app.api.tasks.get(self.key), self._app.values)

    def cancel(self) -> None:
        """Cancels the task. Later reports of its worker are rejected."""
        self._app.portal.call(self._app.api.tasks.cancel(self.key))

    async def cancel_async(self) -> None:
        """Like `cancel`, for an event loop."""
        await self._app.portal.reach(self._app.api.tasks.cancel(self.key))

    async def _result(self, timeout: float | None) -> R_co:
        outcome = await wait_for_outcome(self._app.api, self.key, timeout)
        if outcome.state == JobState.COMPLETED and isinstance(outcome.result, msgspec.Raw):
            return self._decode(outcome.result)
        if outcome.state is None:
            raise NotFound(f"Task {self.key} is unknown or no longer kept")
        raise no_result(self.key, outcome.state, outcome.error)


_ENDED = {
    JobState.INCIDENT: "failed and has an incident",
    JobState.CANCELED: "was canceled",
    JobState.DISCARDED: "failed and was discarded",
    JobState.ERROR_THROWN: "ended in an error of its process",
}


def no_result(key: str, state: JobState, error: str | None) -> TaskFailed:
    """The error for a task that has no result; `fields["error"]` has the whole traceback."""
    why = raised_line(error or "")
    what = _ENDED.get(state, f"is {state}")
    return TaskFailed(
        f"Task {key} {what}" + (f": {why}" if why else ""), key=key, state=str(state), error=error
    )


_OPEN = (JobState.WAITING, JobState.SCHEDULED, JobState.ACTIVE)


async def wait_for_outcome(api: Api, key: str, timeout: float | None) -> TaskOutcome:
    """How a task ended, over many long polls if need be; DeadlineExceeded after the time-out.

    A node that is away meanwhile is waited for: until the time-out, or as long as is usual.
    """
    if not key:
        raise InvalidState("Expected a handle with a key, but its transaction is not committed")
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout

    async def poll() -> tuple[TaskOutcome, int]:
        left = WAIT_MS_MAX if deadline is None else int((deadline - loop.time()) * 1000)
        (outcome,) = await api.tasks.results([key], max(0, min(left, WAIT_MS_MAX)))
        return outcome, left

    while True:
        with no_later_than(deadline):
            is_over = over_after(api.patience_s if deadline is None else None)
            outcome, left = await persistently(poll, lambda error: _is_passing(api, error), is_over)
        if outcome.state not in _OPEN:
            return outcome
        if left <= 0:
            raise DeadlineExceeded(
                f"Task {key} has not ended within {timeout} s: it is {outcome.state}", key=key
            )


def _is_passing(api: Api, error: BaseException) -> bool:
    return isinstance(error, HoldfastError) and api.is_passing(error)
