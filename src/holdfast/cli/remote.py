"""A conversation with a node: connect, ask, hang up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.gateway.api import Api

T = TypeVar("T")


def ask(url: str, question: Callable[[Api], Awaitable[T]]) -> T:
    """The node's answer to a question."""
    return asyncio.run(_ask(url, question))


async def _ask(url: str, question: Callable[[Api], Awaitable[T]]) -> T:
    from holdfast.client.remote import RemoteApi

    api = RemoteApi(url)
    try:
        return await question(api)
    finally:
        await api.close()
