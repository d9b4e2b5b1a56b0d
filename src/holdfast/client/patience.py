"""Trying again while a node has no room or is away."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from holdfast.errors import HoldfastError

T = TypeVar("T")


async def patiently(
    call: Callable[[], Awaitable[T]], kinds: tuple[type[HoldfastError], ...], seconds: float
) -> T:
    """What a call gives; after an error of these kinds it is made again, for some seconds."""
    try:
        return await call()
    except kinds:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(kinds),
            wait=wait_random_exponential(0.02, max=1.0),
            stop=stop_after_delay(seconds),
            reraise=True,
        ):
            with attempt:
                return await call()
        raise
