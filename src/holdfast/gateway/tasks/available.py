"""Which partitions may have jobs of a type."""

import asyncio
from collections.abc import Callable
from functools import partial

from holdfast.engine.jobs.queries import FindWaitingTypes
from holdfast.engine.jobs.values import JobsAvailable
from holdfast.errors import HoldfastError
from holdfast.gateway.access.asking import Asked
from holdfast.partitions import EffectTopic

FAR_EVERY = 8  # activations: one of so many goes to another member if it has waited longest
LOOK_AGAIN_S = 1.0  # after a partition that did not answer: its next owner may have told nobody
ASKED_LATELY_S = 60.0  # for a type that no worker has asked for since, nobody is asked again
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
        self.again: asyncio.TimerHandle | None = None
        self.asked_at = 0.0  # by a worker, of the loop
        self.is_unsure = False  # somebody did not answer, and is to be asked before the next worker

    def forget(self) -> None:
        self.stop()
        if self.again is not None:
            self.again.cancel()


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
        now = asyncio.get_running_loop().time()
        for type_ in types:
            known = self._types.get(type_)
            if known is not None:
                known.asked_at = now
                if known.is_unsure:
                    known.is_unsure = False
                    await self._look(type_)
            else:
                while len(self._types) >= TYPES_FOLLOWED_MAX:
                    self._types.pop(next(iter(self._types))).forget()
                told = partial(self._told, type_)
                self._types[type_] = _Type(
                    self._asked.follow(EffectTopic(JobsAvailable, type_), told)
                )
                self._types[type_].asked_at = now
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

    def look_again(self, type_: str) -> None:
        """A partition did not answer: soon all are asked, whatever is told until then."""
        known = self._types.get(type_)
        loop = asyncio.get_running_loop()
        if known is None:
            return
        if loop.time() - known.asked_at > ASKED_LATELY_S:
            known.is_unsure = True
        elif known.again is None:
            known.again = loop.call_later(LOOK_AGAIN_S, self._look_now, type_)

    def _look_now(self, type_: str) -> None:
        if (known := self._types.get(type_)) is not None:
            known.again = None
        self._told(type_, None)

    def _told(self, type_: str, effect: JobsAvailable | None) -> None:
        known = self._types.get(type_)
        if known is None:
            return
        if effect is not None:
            self._note(known, effect.partition)
            self._serve(effect)
        elif known.looking is not None:  # the look may have asked that partition already
            self.look_again(type_)
        else:  # some may be there that nobody told of
            known.looking = asyncio.ensure_future(self._look_and_serve(type_))
            known.looking.add_done_callback(lambda _: setattr(known, "looking", None))

    def _note(self, known: _Type, partition: int) -> None:
        self._words += 1
        known.partitions[partition] = self._words

    async def _look(self, type_: str) -> None:
        """Asks all partitions, the near ones first; later again, if one does not answer."""
        near = self._asked.near
        far = [each for each in range(1, self._asked.count + 1) if each not in near]
        for partition in (*near, *far):
            try:
                if await self._asked.ask(partition, FindWaitingTypes((type_,))):
                    known = self._types.get(type_)
                    if known is not None:
                        self._note(known, partition)
            except HoldfastError:
                self.look_again(type_)

    async def _look_and_serve(self, type_: str) -> None:
        await self._look(type_)
        known = self._types.get(type_)
        for partition in tuple(known.partitions) if known is not None else ():
            self._serve(JobsAvailable(partition, type_))
