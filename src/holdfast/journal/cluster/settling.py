"""What becomes of closed ranges: other replica sets once they are copied, and pruning.

Each is one guarded write of the chain. A member that is beaten, or does not know what became of
its write, has changed nothing that matters: the next call reads the chain and looks again.
"""

import contextlib
from collections.abc import Callable, Sequence

from holdfast.errors import Unavailable, Unknown
from holdfast.journal.cluster.asking import ReplicaDisks
from holdfast.journal.cluster.chain import closed_counts, closed_end, pruned, resettled
from holdfast.journal.cluster.messages import Survey, Surveyed
from holdfast.sequence.api import Beaten, Chain, Coordination, Replica
from holdfast.sequence.quorum import quorum_of


class Settling:
    """Looks after the closed ranges of partitions; called by their owners."""

    def __init__(
        self, disks: ReplicaDisks, coordination: Coordination, learned: Callable[[Chain], None]
    ) -> None:
        self._disks = disks
        self._coordination = coordination
        self._learned = learned

    async def resettle(self, partition: int) -> Chain:
        """Gives closed ranges the set of the open one, where all disks of that hold them."""
        chain = await self._coordination.chain(partition)
        if chain.last is None:
            return chain
        wanted = chain.last.replicas
        behind = [each.epoch for each in chain.ranges[:-1] if set(each.replicas) != set(wanted)]
        if not behind:
            return chain
        surveys = await self._survey(wanted, partition)
        if len(surveys) < len(wanted):
            return chain
        changed = chain
        for epoch in behind:
            if all(holds(each, chain, epoch) for each in surveys):
                changed = resettled(changed, epoch, wanted)
        return await self._write(chain, changed)

    async def prune(self, partition: int) -> Chain:
        """Takes the oldest ranges out of the chain that a quorum has snapshots behind.

        A disk that comes back and needs one of them gets a snapshot instead.
        """
        chain = await self._coordination.chain(partition)
        if len(chain.ranges) < 2 or chain.last is None:
            return chain
        surveys = await self._survey(chain.last.replicas, partition)
        if len(surveys) < quorum_of(len(chain.last.replicas)):
            return chain
        topics = chain.last.starts
        needed = {topic: min(each.needed.get(topic, 0) for each in surveys) for topic in topics}
        return await self._write(chain, pruned(chain, needed))

    async def _survey(self, replicas: Sequence[Replica], partition: int) -> list[Surveyed]:
        """What disks have, of those that answer."""
        surveys: list[Surveyed] = []
        for replica in replicas:
            with contextlib.suppress(Unavailable, Unknown):
                answer = await self._disks.ask(replica, Survey(replica.disk, partition))
                assert isinstance(answer, Surveyed), answer
                surveys.append(answer)
        return surveys

    async def _write(self, chain: Chain, wanted: Chain) -> Chain:
        if wanted.ranges == chain.ranges:
            return chain
        with contextlib.suppress(Unknown):
            written = await self._coordination.replace(wanted)
            if not isinstance(written, Beaten):
                self._learned(written)
                return written
        return chain


def holds(survey: Surveyed, chain: Chain, epoch: int) -> bool:
    """Whether a disk has all of a closed range, as entries or within a snapshot."""
    counts = survey.counts.get(epoch, {})
    return all(
        counts.get(topic, 0) >= count
        or survey.needed.get(topic, 0) >= (closed_end(chain, epoch, topic) or 0)
        for topic, count in closed_counts(chain, epoch).items()
    )
