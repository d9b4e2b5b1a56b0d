"""What a group is after a message of its log: plain data, the same for every member.

Partitions are values that are replaced, so that code that shows them can keep them. `put` and
`drop` keep the indexes beside them right; nothing else writes.
"""

from enum import IntEnum

import msgspec

from holdfast.groups.api import MemberId, NewPartition, Offset
from holdfast.groups.watermark import Watermarks


class PartitionStatus(IntEnum):
    """Where a partition is in its life."""

    CREATED = 1  # a parent is not finished
    READY = 2  # may run
    SCHEDULED = 3  # picked, not yet started
    RUNNING = 4
    PARKED = 5  # failed, or held by hand; waits alone
    FINISHED = 6  # kept until everything that refers to it is finished
    REMOVED = 7  # not kept; only told


_FINISHED = PartitionStatus.FINISHED  # looked up once: most of the fold asks for it


class MemberStatus(IntEnum):
    """How far a member has come with the present epoch."""

    INITIAL_SYNC = 1  # named by a rebalance, has not answered
    ANSWERED = 2
    EPOCH_STARTED = 3  # has said something in the present epoch


class GroupPartition(msgspec.Struct, frozen=True, gc=False):
    """A partition: whose it is, with whom it is shared, and how far its work has come."""

    token: str
    status: PartitionStatus
    owner: MemberId
    target: MemberId = ""  # shared with this member
    is_released: bool = False  # drained: the target may pick it
    is_held: bool = False  # parked by hand
    parents: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    offset: Offset = None
    watermark: int | None = None
    error: str = ""
    attempts: int = 0  # consecutive failures
    pin: str = ""  # the name of the member that people want it at

    @property
    def destination(self) -> MemberId:
        """Whose load it counts as."""
        return self.target or self.owner

    @property
    def is_live(self) -> bool:
        return self.status is not _FINISHED


class MemberState(msgspec.Struct):
    """A member of the epoch, or one that a rebalance names."""

    status: MemberStatus = MemberStatus.INITIAL_SYNC
    counter: int | None = None  # of its last message in this epoch
    has_gap: bool = False  # a message is missing: ignored until a whole one comes


class Rebalance(msgspec.Struct):
    """A rebalance under way: who is asked, and who has answered."""

    generation: int
    leader: MemberId
    members: tuple[MemberId, ...]
    answered: set[MemberId]


class GroupState:
    """The fold of a sync log; see `merge`."""

    def __init__(self) -> None:
        self.offset = -1  # of the last message in it
        self.epoch = 0
        self.generation = 0  # the newest that was seen
        self.leader: MemberId = ""
        self.members: dict[MemberId, MemberState] = {}
        self.rebalance: Rebalance | None = None
        self.partitions: dict[str, GroupPartition] = {}
        self.gone: set[str] = set()  # declared once, finished and removed
        self.announced: dict[str, NewPartition] = {}  # merges that wait for their smallest parent
        self.watermark: int | None = None
        self.clear_indexes()

    def clear_indexes(self) -> None:
        """Forgets what follows from the partitions; they are put anew."""
        self.loads: dict[MemberId, int] = {}
        self.owned: dict[MemberId, set[str]] = {}  # by owner
        self.shared: dict[MemberId, set[str]] = {}  # by target
        self.children: dict[str, set[str]] = {}  # by parent, known or not
        self.touched: set[str] = set()  # since somebody took them
        self._watermarks = Watermarks()

    def put(self, partition: GroupPartition) -> None:
        """Adds or replaces a partition."""
        token = partition.token
        former = self.partitions.get(token)
        self.partitions[token] = partition
        self.touched.add(token)
        is_live = partition.status is not _FINISHED
        if (
            former is None
            or former.owner != partition.owner
            or former.target != partition.target
            or (former.status is not _FINISHED) is not is_live
        ):
            self._index(former, partition)
        if is_live and (former is None or former.watermark != partition.watermark):
            self._watermarks.put(token, partition.watermark)

    def put_all(self, partitions: dict[str, GroupPartition]) -> None:
        """Replaces all partitions; the indexes are made anew, which is cheaper than one by one."""
        touched = self.touched | self.partitions.keys() | partitions.keys()
        self.partitions = partitions
        self.clear_indexes()
        self.touched = touched
        owned, loads = self.owned, self.loads
        for token, partition in partitions.items():
            owner, target = partition.owner, partition.target
            if owner in owned:
                owned[owner].add(token)
            else:
                owned[owner] = {token}
            if target:
                self.shared.setdefault(target, set()).add(token)
            for parent in partition.parents:
                self.children.setdefault(parent, set()).add(token)
            if partition.status is not _FINISHED:
                destination = target or owner
                loads[destination] = loads.get(destination, 0) + 1
        self._watermarks.put_all(
            {
                token: partition.watermark
                for token, partition in partitions.items()
                if partition.status is not _FINISHED
            }
        )

    def _index(self, former: GroupPartition | None, partition: GroupPartition) -> None:
        """Whose a partition is has changed, or whether it counts."""
        token = partition.token
        if former is None:
            for parent in partition.parents:
                self.children.setdefault(parent, set()).add(token)
        else:
            self.owned[former.owner].discard(token)
            if former.target:
                self.shared[former.target].discard(token)
            if former.is_live:
                self.loads[former.destination] -= 1
        self.owned.setdefault(partition.owner, set()).add(token)
        if partition.target:
            self.shared.setdefault(partition.target, set()).add(token)
        if partition.is_live:
            self.loads[partition.destination] = self.loads.get(partition.destination, 0) + 1
        else:
            self._watermarks.drop(token)

    def drop(self, token: str) -> None:
        """Forgets a finished partition."""
        partition = self.partitions.pop(token)
        assert not partition.is_live, f"{token} is removed before it is finished"
        self.touched.add(token)
        self.owned[partition.owner].discard(token)
        for parent in partition.parents:
            self.children[parent].discard(token)
            if not self.children[parent]:
                del self.children[parent]
        if not partition.parents:
            self.gone.add(token)

    def raise_watermark(self) -> None:
        """The low watermark follows the partitions, and never goes back."""
        lowest = self._watermarks.lowest()
        if lowest is not None and (self.watermark is None or lowest > self.watermark):
            self.watermark = lowest

    def is_finished(self, token: str) -> bool:
        """Whether nothing has to wait for a partition: it is finished, or nobody knows it."""
        partition = self.partitions.get(token)
        return partition is None or partition.status is _FINISHED

    def load(self, member: MemberId) -> int:
        """How many live partitions are a member's, or are about to be."""
        return self.loads.get(member, 0)
