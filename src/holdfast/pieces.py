"""Long work beside a loop: a generator of small pieces, each made in a thread."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from typing import Any, Final, TypeVar

from holdfast.errors import HoldfastError
from holdfast.logs import log

T = TypeVar("T")
R = TypeVar("R")

_END: Final = object()


async def in_thread(pieces: Iterator[T]) -> AsyncGenerator[T, None]:
    """The pieces of a generator, each made in a thread, one after the other."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            making = loop.run_in_executor(None, next, pieces, _END)
            try:
                piece: Any = await asyncio.shield(making)
            except asyncio.CancelledError:
                await asyncio.wait([making])  # it is not to be interrupted in the middle
                raise
            if piece is _END:
                return
            yield piece
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


async def finished(pieces: Generator[None, None, R]) -> R:
    """Makes all pieces of a generator in a thread; what it returns."""
    returned: list[R] = []

    def keeping() -> Iterator[None]:
        returned.append((yield from pieces))

    async with contextlib.aclosing(in_thread(keeping())) as made:
        async for _ in made:
            await asyncio.sleep(0)
    return returned[0]


def end_of(pieces: Generator[None, None, R]) -> R:
    """Makes all pieces of a generator at once, for callers without a loop; what it returns."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


async def attempted(what: str, work: Coroutine[Any, Any, None]) -> bool:
    """Whether it was done. What fails is told, and is tried again in its time."""
    try:
        await work
    except (HoldfastError, OSError):  # told where it was found
        return False
    except Exception as error:
        log.error("upkeep failed", what=what, exc_info=error)
        return False
    return True
