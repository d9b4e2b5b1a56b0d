"""Asking again while a node has no room or is away, as soon as it says and not before."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from math import inf
from types import CoroutineType, NoneType
from typing import Any, TypeVar

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential
from tenacity.wait import wait_base

from holdfast.errors import HoldfastError

T = TypeVar("T")

Spread = Callable[[], float]
"""Gives numbers from 0 to 1: those that were refused together do not come back together."""

_PAUSE_S = 0.02  # the first pause where the node does not say how long; each is twice the last
_PAUSE_S_MAX = 1.0
_LATER_SHARE_MAX = 0.25  # of what the node asks for, they come back later: never earlier


class _AsAsked(wait_base):
    """As long as the node asks; without a word from it, pauses that grow."""

    def __init__(self, pause_s_max: float, spread: Spread) -> None:
        self._growing = wait_exponential(_PAUSE_S, max=pause_s_max)
        self._spread = spread

    def __call__(self, retry_state: RetryCallState) -> float:
        assert retry_state.outcome is not None
        error = retry_state.outcome.exception()
        asked_ms = error.retry_after_ms if isinstance(error, HoldfastError) else 0
        if asked_ms:
            return asked_ms / 1000 * (1 + _LATER_SHARE_MAX * self._spread())
        return self._growing(retry_state) * self._spread()


class _InAnyThread:
    """Holds what one call remembers: the loop may go on in another thread (`lent_loop.py`)."""


async def persistently(
    call: Callable[[], Awaitable[T]],
    is_passing: Callable[[BaseException], bool],
    is_over: Callable[[float], bool],
    *,
    pause_s_max: float = _PAUSE_S_MAX,
    spread: Spread = random.random,
) -> T:
    """What a call gives; it is made again after an error that passes.

    `is_over` is told the pause before the next attempt, and says whether there is to be none.
    """
    try:  # mostly it succeeds: the machinery of trying again is not needed
        return await call()
    except Exception as error:
        if not is_passing(error):
            raise
        first = error
    return await again(call, first, is_passing, is_over, pause_s_max, spread)


async def again(
    call: Callable[[], Awaitable[T]],
    first: Exception,
    is_passing: Callable[[BaseException], bool],
    is_over: Callable[[float], bool],
    pause_s_max: float,
    spread: Spread = random.random,
) -> T:
    """All attempts but the first, which has failed."""
    failed: Exception | None = first
    retrying = AsyncRetrying(
        retry=retry_if_exception(is_passing),
        wait=_AsAsked(pause_s_max, spread),
        stop=lambda state: is_over(state.upcoming_sleep),
        reraise=True,
    )
    # tenacity keeps its count by thread
    retrying._local = _InAnyThread()  # pyright: ignore[reportAttributeAccessIssue]
    async for attempt in retrying:
        with attempt:
            if failed is not None:  # the pause before the second attempt is like all others
                failed, error = None, failed
                raise error
            return await call()
    raise AssertionError("the last attempt ends in an answer or an error")


async def patiently(
    call: Callable[[], Awaitable[T]],
    kinds: tuple[type[HoldfastError], ...],
    seconds: float,
    spread: Spread = random.random,
) -> T:
    """What a call gives; after an error of these kinds it is made again, for some seconds."""
    is_over = over_after(seconds)
    return await persistently(call, lambda error: isinstance(error, kinds), is_over, spread=spread)


# --- an Api that is patient -------------------------------------------------------------------

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def no_later_than(deadline: float | None) -> Iterator[None]:
    """Meanwhile nobody is patient beyond a time of the loop; None: their own patience counts."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def over_after(seconds: float | None) -> Callable[[float], bool]:
    """Says no more once it was asked first so long ago; None: only the caller's deadline counts."""
    loop, given = asyncio.get_running_loop(), _deadline.get()
    deadline: float | None = None

    def is_over(pause_s: float) -> bool:
        nonlocal deadline
        if deadline is None:
            own = inf if seconds is None else loop.time() + seconds
            deadline = own if given is None else min(own, given)
        return loop.time() + pause_s > deadline

    return is_over


def patient(api: T, seconds: float, spread: Spread = random.random) -> T:
    """The same Api; what it refuses for the moment is asked again for some seconds.

    An error with `retry_after_ms` says that nothing was done, and when to come back: the request
    is sent again then. If that is later than the caller waits, the error is raised at once. Other
    errors are the caller's, who knows whether a request may be sent twice.
    """
    stands_for_it: Any = _Patient(api, seconds, spread)
    return stands_for_it


class _Patient:
    """Stands before an object: what its coroutines refuse for the moment is asked again."""

    def __init__(self, inner: Any, seconds: float, spread: Spread) -> None:
        self._inner = inner
        self._seconds = seconds
        self._spread = spread

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if callable(found):
            found = self._asking(found)
        elif isinstance(found, _VALUES):
            return found  # it may be another one later
        else:  # a part of the Api
            found = _Patient(found, self._seconds, self._spread)
        self.__dict__[name] = found
        return found

    def _asking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        is_async = iscoroutinefunction(method)

        def ask(*args: Any, **named: Any) -> Any:
            if is_async:  # it is called when somebody awaits it
                return self._patiently(method, args, named)
            asked = method(*args, **named)
            if type(asked) is not CoroutineType:
                return asked
            return self._patiently(method, args, named, asked)

        return ask

    async def _patiently(
        self, method: Callable[..., Any], args: Any, named: Any, asked: Any = None
    ) -> Any:
        try:
            return await (method(*args, **named) if asked is None else asked)
        except HoldfastError as error:
            if not _may_be_repeated(error, args):
                raise
            first = error
        return await again(
            lambda: method(*args, **named),
            first,
            lambda error: _may_be_repeated(error, args),
            over_after(self._seconds),
            _PAUSE_S_MAX,
            self._spread,
        )


_VALUES = (str, bytes, int, float, list, tuple, dict, msgspec.Struct, NoneType)


def _may_be_repeated(error: BaseException, args: tuple[Any, ...]) -> bool:
    """Whether the node says that nothing was done.

    A submission with keys goes to several partitions, of which some may have taken theirs: their
    keys keep them from being done twice. Those without keys beside them would be.
    """
    if not isinstance(error, HoldfastError) or not error.retry_after_ms:
        return False
    for arg in args:
        if isinstance(arg, list | tuple):
            with_key = {bool(each.key) for each in arg if hasattr(each, "key")}
            if len(with_key) == 2:
                return False
    return True
