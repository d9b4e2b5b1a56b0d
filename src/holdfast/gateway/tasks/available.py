"""Which partitions may have jobs of a type."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from holdfast.engine.jobs.queries import FindWaitingTypes
from holdfast.engine.jobs.values import JobsAvailable
from holdfast.errors import HoldfastError
from holdfast.gateway.access.asking import Asked
from holdfast.partitions import Topic

FAR_EVERY = 8  # activations: one of so many goes to another member if it has waited longest
TYPES_FOLLOWED_MAX = 4_096  # types of jobs that workers asked for: 2 MB

Serve = Callable[[JobsAvailable], None]
"""Called when jobs may be there: a worker that waits may have them."""


class _Type:
    """What is known of one type."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.stop = stop
        # in the order in which they will be asked, each with the number of the last word of it
        self.partitions: dict[int, int] = {}
        self.looking: asyncio.Future[None] | None = None


class Available:
    """Follows the types that workers ask for."""

    def __init__(self, asked: Asked, serve: Serve) -> None:
        self._asked = asked
        self._serve = serve
        self._types: dict[str, _Type] = {}
        self._words = 0  # of jobs that are there, ever
        self._turn = 0

    async def follow(self, types: tuple[str, ...]) -> None:
        """From now on it is known which partitions may have jobs of these."""
        for type_ in types:
            if type_ not in self._types:
                while len(self._types) >= TYPES_FOLLOWED_MAX:
                    self._types.pop(next(iter(self._types))).stop()
                told = partial(self._told, type_)
                self._types[type_] = _Type(self._asked.follow(Topic(JobsAvailable, type_), told))
                await self._look(type_)

    def next(self, types: tuple[str, ...]) -> tuple[str, int, int] | None:
        """A type and a partition that may have jobs of it, the one asked longest ago.

        Those of this member come first, which costs less; now and then it is another one's turn.
        """
        for type_ in types:
            known = self._types.get(type_)
            if known is not None and known.partitions:
                self._turn += 1
                partition = next(iter(known.partitions))
                near = self._asked.near
                if partition not in near and self._turn % FAR_EVERY:
                    partition = next((each for each in known.partitions if each in near), partition)
                word = known.partitions.pop(partition)
                known.partitions[partition] = word  # to the end of the order
                return type_, partition, word
        return None

    def none(self, type_: str, partition: int, word: int) -> None:
        """A partition had no jobs of a type, unless there was word of some since it was asked."""
        known = self._types.get(type_)
        if known is not None and known.partitions.get(partition) == word:
            del known.partitions[partition]

    def _told(self, type_: str, effect: JobsAvailable | None) -> None:
        known = self._types.get(type_)
        if known is None:
            return
        if effect is not None:
            self._note(known, effect.partition)
            self._serve(effect)
        elif known.looking is None:  # some may be there that nobody told of
            known.looking = asyncio.ensure_future(self._look_and_serve(type_))
            known.looking.add_done_callback(lambda _: setattr(known, "looking", None))

    def _note(self, known: _Type, partition: int) -> None:
        self._words += 1
        known.partitions[partition] = self._words

    async def _look(self, type_: str) -> None:
        """Asks all partitions, the near ones first. One that does not answer tells later."""
        near = self._asked.near
        far = [each for each in range(1, self._asked.count + 1) if each not in near]
        for partition in (*near, *far):
            with contextlib.suppress(HoldfastError):
                if await self._asked.ask(partition, FindWaitingTypes((type_,))):
                    known = self._types.get(type_)
                    if known is not None:
                        self._note(known, partition)

    async def _look_and_serve(self, type_: str) -> None:
        await self._look(type_)
        known = self._types.get(type_)
        for partition in tuple(known.partitions) if known is not None else ():
            self._serve(JobsAvailable(partition, type_))
