"""A turn for everybody else on the loop."""

import asyncio


async def others(seconds: float = 0.0) -> None:
    """Lets everybody else have a turn, or so much time."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
