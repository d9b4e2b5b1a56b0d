"""A turn for everybody else on the loop."""

import asyncio


async def others(seconds: float = 0.0) -> None:
    """Lets everybody else have a turn, or so much time."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _end, over)
    try:
        await over
    finally:
        timer.cancel()


def one_at_a_time() -> asyncio.Lock:
    """A lock for what takes several turns and must not be done twice at once."""
    return asyncio.Lock()


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():  # the waiting task may have been canceled in the same turn
        over.set_result(None)
