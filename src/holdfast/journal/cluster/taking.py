"""The shell of a take-over: asks the disks, writes the chain, finds out what became of it.

What is decided is decided in `taker.py`. Here are the calls to members, the waiting and the
retries. Disks are asked side by side; each is asked again until it answers, or until it no longer
matters. A write of the chain whose outcome is unknown is read back before anything else is done.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Forbidden, Unavailable, Unknown
from holdfast.journal.cluster.asking import ReplicaDisks, tries
from holdfast.journal.cluster.bringing import TailBringing
from holdfast.journal.cluster.chain import Opening, is_opened_by, is_rolled_back
from holdfast.journal.cluster.messages import (
    Fence,
    Fenced,
    OwnerHeard,
    Promised,
    Survey,
    Surveyed,
)
from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.taker import TakeOver, TakePhase
from holdfast.limits import (
    HAND_OVER_MS_MAX,
    TAKE_OVER_HEAL_MS,
    TAKE_OVER_MS_MAX,
    TAKE_OVER_RETRY_MS_MIN,
)
from holdfast.logs import log
from holdfast.sequence.api import Beaten, Chain, Coordination, LiveMember, Replica

_TAKEN = "Another member has taken it over"
ChooseSet = Callable[[int], tuple[Replica, ...]]


class NotTaken(NamedTuple):
    """The partition was not taken over, or not handed on."""

    chain: Chain | None  # as it was read last, if it could be read
    reason: str


class Taking:
    """What one start of a member does to chains. One thing at a time for each partition."""

    def __init__(
        self,
        disks: ReplicaDisks,
        coordination: Coordination,
        clock: Clock,
        *,
        nonce: str,
        choose_set: ChooseSet,
        learned: Callable[[Chain], None],
    ) -> None:
        self.on_rolled_back: list[Callable[[int, str], None]] = []
        self._disks = disks
        self._bringing = TailBringing(disks)
        self._coordination = coordination
        self._clock = clock
        self._nonce = nonce
        self._choose_set = choose_set
        self._learned = learned  # told of every chain that is read or written
        self._locks: dict[int, asyncio.Lock] = {}
        self._fencing: dict[int, tuple[int, asyncio.Future[None]]] = {}  # of which epoch; news

    def heard(self, chain: Chain) -> None:
        """A chain was learned: a take-over that fences an older range need not wait any longer."""
        epoch, news = self._fencing.get(chain.partition, (chain.epoch, None))
        if news is not None and chain.epoch > epoch and not news.done():
            news.set_result(None)

    # --- what may be asked for ---

    async def take_over(
        self, partition: int, *, used: int = 0, is_drain: bool = False
    ) -> Chain | NotTaken:
        """Opens the next range of a partition for this start of this member.

        An open range of this start that is newer than the one it has `used` is taken as it is.
        `is_drain`: the owner agrees, so it does not matter who hears it.
        """
        deadline = self._clock.monotonic() + TAKE_OVER_MS_MAX / 1_000
        async with self._lock(partition):
            try:
                while True:
                    spans = Spans(self._clock)
                    chain = await self._read(partition)
                    spans.end("read_ms")
                    opening = self._opening(partition)
                    if chain.epoch > used and is_opened_by(chain, chain.epoch, opening):
                        return chain
                    take = TakeOver(chain, opening)
                    is_own = chain.last is not None and chain.last.owner == opening.owner
                    outcome = await self._attempt(take, is_drain or is_own, deadline, spans)
                    if isinstance(outcome, Chain):
                        log.info(
                            "range taken over", partition=partition, epoch=take.opens, **spans.ms
                        )
                    if outcome is not None:
                        return outcome
            except (Unavailable, Unknown) as error:  # the store is away, so nobody fences
                return NotTaken(None, error.message)

    async def hand_over(
        self, partition: int, ours: OwnerRange, to: LiveMember, replicas: tuple[Replica, ...]
    ) -> Chain | NotTaken:
        """A planned move: closes the range of this owner and opens the next one for a live member.

        With this member itself as the target it changes the replica set. From here on the range
        takes no appends, whatever comes of it: if it is not handed on, it has to be taken over.
        """
        ours.stop()
        opening = Opening(to.member, to.nonce, replicas)
        deadline = self._clock.monotonic() + HAND_OVER_MS_MAX / 1_000
        async with self._lock(partition):
            while not ours.is_drained:
                if ours.is_ended:  # somebody takes over: that one finds out what is kept
                    return NotTaken(None, _TAKEN)
                if self._clock.monotonic() >= deadline:
                    return NotTaken(None, "Not all that was sent is on a quorum of disks")
                await asyncio.sleep(TAKE_OVER_RETRY_MS_MIN / 1_000)
            try:
                while True:
                    chain = await self._read(partition)
                    if chain.epoch != ours.epoch:
                        return NotTaken(chain, _TAKEN)
                    outcome = await self._close(TakeOver.by_owner(chain, ours, opening))
                    if outcome is not None:
                        return outcome
            except (Unavailable, Unknown) as error:
                return NotTaken(None, error.message)

    async def heal(self, partition: int, epoch: int, promise: int) -> Chain | NotTaken:
        """A disk has promised more than the epoch of this owner: finds out, and goes on.

        The fencing member gets its time. If the range is open after that, the owner takes over.
        """
        try:
            chain = await self._read(partition)
            if is_rolled_back(chain, promise, 0):
                return self._alarm(chain, promise, 0)
            if chain.epoch == epoch:
                await asyncio.sleep(TAKE_OVER_HEAL_MS / 1_000)
                chain = await self._read(partition)
        except (Unavailable, Unknown) as error:
            return NotTaken(None, error.message)
        if chain.epoch == epoch:
            return await self.take_over(partition, used=epoch, is_drain=True)
        mine = is_opened_by(chain, chain.epoch, self._opening(partition))
        return chain if mine else NotTaken(chain, _TAKEN)

    # --- one attempt ---

    async def _attempt(
        self, take: TakeOver, is_drain: bool, deadline: float, spans: "Spans"
    ) -> Chain | NotTaken | None:
        """Fences, copies and closes; None: the chain has changed, to be read and tried again."""
        refusals: dict[str, str] = {}  # by member, why it does not promise
        if take.replicas:
            enough = asyncio.Event()  # others have promised that this disk makes it a quorum
            fencing = {
                each: self._fence(take, each, is_drain, refusals, enough) for each in take.replicas
            }
            async with _side_by_side(fencing.values()) as fences:
                if not await self._until_promised(take, fences, deadline):
                    return None
                spans.end("fence_ms")
                if take.can_choose:
                    take.choose()
                bringing = [
                    self._bringing.bring(take, each, fence)
                    for each, fence in zip(fencing, fences, strict=True)
                    if take.phase is TakePhase.COPYING
                ]
                async with _side_by_side(bringing) as copies:
                    await self._until(lambda: take.can_close, take, copies, deadline)
                spans.end("copy_ms")
        else:
            await self._look_around(take)
        if take.phase is TakePhase.BEATEN:
            return await self._beaten(take)
        if not take.can_close:
            return NotTaken(take.chain, _reason(take, refusals))
        closed = await self._close(take)
        spans.end("write_ms")
        return closed

    async def _until_promised(
        self, take: TakeOver, fences: list["asyncio.Task[None]"], deadline: float
    ) -> bool:
        """Waits for promises; False if there is a newer range before there are enough of them."""
        partition = take.chain.partition
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fencing[partition] = (take.chain.epoch, news)
        try:
            await self._until(lambda: take.can_choose, take, fences, deadline, news)
        finally:
            del self._fencing[partition]
        return take.can_choose or not news.done()

    async def _until(
        self,
        reached: Callable[[], bool],
        take: TakeOver,
        tasks: list["asyncio.Task[None]"],
        deadline: float,
        news: "asyncio.Future[None] | None" = None,
    ) -> None:
        """Waits until it is reached, the take-over has ended, there is news, or it is too late."""
        pending: set[asyncio.Future[None]] = set(tasks)
        while pending and not reached() and take.phase is not TakePhase.BEATEN:
            left = deadline - self._clock.monotonic()
            if left <= 0 or (news is not None and news.done()):
                return
            awaited = pending if news is None else pending | {news}
            done, _ = await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            pending -= done
            for task in done:
                task.result()  # a bug is not hidden

    async def _fence(
        self,
        take: TakeOver,
        replica: Replica,
        is_drain: bool,
        refusals: dict[str, str],
        enough: asyncio.Event,
    ) -> None:
        """Asks one disk for its promise until it answers.

        The own disk comes last: a member that was cut off, or wakes up from a pause, hears nobody.
        Its promise alone would fence an owner that all others hear.
        """
        if replica == self._disks.own and take.quorum > 1:
            await enough.wait()
        partition, epoch = take.chain.partition, take.opens - 1
        message = Fence(replica.disk, partition, epoch, take.opens, is_drain)
        async for attempt in tries():
            with attempt:
                try:
                    answer = await self._disks.ask(replica, message)
                except Forbidden as error:  # this member was removed, or is not known there yet
                    refusals[replica.member] = error.message
                    return
                if isinstance(answer, Promised):
                    refusals.pop(replica.member, None)
                    take.promised(replica, answer.counts, answer.newest)
                    if len(take.answered()) >= take.quorum - 1:
                        enough.set()
                elif isinstance(answer, Fenced):
                    take.saw(answer.promise, 0)
                else:
                    assert isinstance(answer, OwnerHeard), answer
                    refusals[replica.member] = reason = f"{replica.member} still hears the owner"
                    raise Unavailable(reason)

    async def _look_around(self, take: TakeOver) -> None:
        """Nobody is fenced for a first range; but if disks have one, the chain is too old."""
        for replica in take.opening.replicas:
            with contextlib.suppress(Unavailable, Unknown):
                answer = await self._disks.ask(replica, Survey(replica.disk, take.chain.partition))
                assert isinstance(answer, Surveyed), answer
                take.saw(answer.promise, max(answer.counts, default=0))

    # --- writing the chain ---

    async def _close(self, take: TakeOver) -> Chain | NotTaken | None:
        """Writes the chain; None: the guard will never hold, to be read and tried again."""
        wanted = take.close()
        async for attempt in tries():  # as long as it takes: it may have been written
            with attempt:
                with contextlib.suppress(Unknown):
                    written = await self._coordination.replace(wanted)
                    if not isinstance(written, Beaten):
                        self._learned(written)
                        return written
                chain = await self._read(take.chain.partition)
                phase = take.read_back(chain)
                if phase is TakePhase.WON:
                    return chain
                if phase is TakePhase.BEATEN:
                    return await self._beaten(take)
                raise Unavailable("The chain was not written yet")
        raise AssertionError("tried for ever")

    async def _beaten(self, take: TakeOver) -> NotTaken | None:
        chain = await self._read(take.chain.partition)
        if take.is_rolled_back(chain):
            return self._alarm(chain, *take.evidence)
        if chain.epoch < take.opens:
            return None
        return NotTaken(chain, _TAKEN)

    def _alarm(self, chain: Chain, promise: int, newest: int) -> NotTaken:
        seen = f"a promise of epoch {promise}" if promise > newest else f"entries of epoch {newest}"
        reason = (
            f"A disk has {seen} of partition {chain.partition}, but the chain in the store ends "
            f"with epoch {chain.epoch}: the store was put back to an older copy. Nothing is taken "
            "over. holdfast cluster repair writes back what the members know; see "
            "docs/how-to/etcd.md, 'When etcd was restored from a backup'"
        )
        log.error("store rolled back", partition=chain.partition, reason=reason)
        for tell in self.on_rolled_back:
            tell(chain.partition, reason)
        return NotTaken(chain, reason)

    # --- helpers ---

    async def _read(self, partition: int) -> Chain:
        chain = await self._coordination.chain(partition)
        self._learned(chain)
        return chain

    def _opening(self, partition: int) -> Opening:
        return Opening(self._disks.own.member, self._nonce, self._choose_set(partition))

    def _lock(self, partition: int) -> asyncio.Lock:
        return self._locks.setdefault(partition, asyncio.Lock())


class Spans:
    """How long each step of a take-over took."""

    def __init__(self, clock: Clock) -> None:
        self.ms: dict[str, float] = {}
        self._clock, self._since = clock, clock.monotonic()

    def end(self, name: str) -> None:
        """A step ends here, and the next one begins."""
        now = self._clock.monotonic()
        self.ms[name] = round((now - self._since) * 1_000, 1)
        self._since = now


def _reason(take: TakeOver, refusals: dict[str, str]) -> str:
    if refusals:
        return "; ".join(refusals[each] for each in sorted(refusals))
    have = len(take.answered())
    if have < take.quorum:
        return f"{have} of {len(take.replicas)} disks have promised, {take.quorum} are needed"
    return f"The tail of epoch {take.opens - 1} is not on {take.quorum} disks yet"


@contextlib.asynccontextmanager
async def _side_by_side(
    coroutines: Iterable[Coroutine[Any, Any, None]],
) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Runs them until the block is left."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
