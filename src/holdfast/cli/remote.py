"""A conversation with a node: connect, ask, hang up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.gateway.api import Api

T = TypeVar("T")

_PATIENCE_S = 30.0  # for a node that has no room now, or of which a process restarts


def ask(url: str, question: Callable[[Api], Awaitable[T]]) -> T:
    """The node's answer to a question."""
    _check_environment()
    return asyncio.run(_ask(url, question))


def _check_environment() -> None:
    """A misspelt HOLDFAST_URL would send the command to another node."""
    from holdfast.config.loading import client_problems
    from holdfast.errors import InvalidArgument

    if problems := client_problems():
        raise InvalidArgument("; ".join(problems), problems=problems)


async def _ask(url: str, question: Callable[[Api], Awaitable[T]]) -> T:
    from holdfast.client.patience import patient
    from holdfast.client.remote import RemoteApi

    api = RemoteApi(url, patience_s=_PATIENCE_S, waits_for_start=False)
    try:
        return await question(patient(api, _PATIENCE_S))
    finally:
        await api.close()
