"""The partitions as whoever asks has them: commands carry who asked, and reading has its bounds.

Who asks is known from the moment a request is let in until it is answered. What the node does by
itself, or for a program that it is embedded in, is asked by nobody and bounded by nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.engine.identity.guard import missing_of, refused
from holdfast.engine.identity.state import Asker, Identities, asker_of, permits
from holdfast.engine.identity.values import (
    DECIDING_PARTITION,
    EVERY_ID,
    Permission,
    ResourceType,
)
from holdfast.engine.kernel import Command, Reply, Required
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import Forbidden

_ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def asking(asker: Asker | None) -> Iterator[None]:
    """Whatever is done inside is asked for by somebody."""
    token = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(token)


def asker_now() -> Asker | None:
    """Who asks for what is being done; None if nobody does."""
    return _ASKER.get()


def claims_now() -> dict[str, Any] | None:
    """The same as a record carries it."""
    asker = _ASKER.get()
    return None if asker is None else msgspec.to_builtins(asker)


def is_asker(claims: Mapping[str, Any] | None) -> bool:
    """Whether whoever asks is who the claims name: the name alone may be a user's or a client's."""
    asker = _ASKER.get()
    if asker is None or not claims:
        return asker is None
    named = asker_of(dict(claims))
    return (named.type, named.sub) == (asker.type, asker.sub)


class Asked:
    """A runner that whoever asks is known to."""

    def __init__(self, runner: Runner[EngineState]) -> None:
        self._runner = runner
        self.processors: Mapping[int, Processor[EngineState]] = runner.processors
        self.settled = runner.settled

    # --- asking -------------------------------------------------------------------------------

    def submit(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> "asyncio.Future[list[Reply]]":
        """As the runner does it, in the name of whoever asks."""
        return self._runner.submit(partition, _signed(commands), size_bytes)

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> "list[asyncio.Future[list[Reply]]]":
        """As the runner does it, in the name of whoever asks."""
        signed = {partition: _signed(group) for partition, group in commands.items()}
        return self._runner.submit_all(signed, size_bytes)

    # --- reading ------------------------------------------------------------------------------

    def may(self, resource: ResourceType, permission: Permission, id_: str) -> bool:
        """Whether whoever asks may do something with one resource."""
        allowed = self.allowed(resource, permission)
        return allowed is None or id_ in allowed

    def allowed(self, resource: ResourceType, *permissions: Permission) -> frozenset[str] | None:
        """The resources with which whoever asks may do any of these; None: with all of them."""
        asker = _ASKER.get()
        if asker is None:
            return None
        found = self.identities.allowed(asker, resource, permissions)
        return None if permits(found, EVERY_ID) else found

    def check(self, *required: Required) -> None:
        """Forbidden, unless whoever asks has all of these permissions."""
        asker = _ASKER.get()
        if asker is None:
            return
        missing = missing_of(self.processors[DECIDING_PARTITION].view, asker, required)
        if missing is not None:
            raise Forbidden(refused(asker.sub, *missing))

    @property
    def identities(self) -> Identities:
        """What the partition knows that decides about identity."""
        return self.processors[DECIDING_PARTITION].view.identities


def _signed(commands: Sequence[Command]) -> Sequence[Command]:
    claims = claims_now()
    if claims is None:
        return commands
    return [
        msgspec.structs.replace(each, claims=claims) if each.claims is None else each
        for each in commands
    ]
