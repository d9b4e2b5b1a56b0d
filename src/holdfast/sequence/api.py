"""What members agree on, and the port to where it is kept: etcd, or memory in the simulation.

Every write is guarded by what was read before it and carries a nonce. A write whose answer is lost
raises `Unknown`: it may take effect at any later moment, or never. The writer reads before its
next write, and knows its own by the nonce. Reads are linearizable. `changes` is a hint only: what
it tells may be late, doubled or missing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from holdfast.errors import Unavailable
from holdfast.sequence.keys import KeyStore


class LogKey(NamedTuple):
    """One log: a topic's partition. Cuts are in the order of these."""

    topic: str
    partition: int


class ClusterSettings(msgspec.Struct, frozen=True):
    """What the first member decides, for all and for ever."""

    id: str
    partitions: int
    replicas: int = 3  # of each range, where there are so many members


class Registered(msgspec.Struct, frozen=True):
    """A member that may take part. It need not run."""

    member: str  # its name
    key: str  # its Ed25519 public key, in hex


class Replica(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A disk of a member. A member whose folder was made anew is another replica."""

    member: str
    disk: str


class LiveMember(msgspec.Struct, frozen=True):
    """What a running member says of itself, under its lease."""

    member: str
    disk: str
    nonce: str  # of this start of it
    address: str  # where other members reach it: host:port
    url: str  # where clients reach it
    version: str
    draining: bool = False


class Range(msgspec.Struct, frozen=True):
    """What one owner appends to one partition in one epoch. It is closed where the next starts."""

    epoch: int
    owner: str
    nonce: str  # of the owner's start: only that one appends
    replicas: tuple[Replica, ...]
    starts: dict[str, int]  # by topic, the offset of its first entry; 0 for a topic not named


class Chain(msgspec.Struct, frozen=True):
    """The ranges of a partition, oldest first; the last one is open."""

    partition: int
    ranges: tuple[Range, ...] = ()
    revision: int = 0  # of the store when this was written: the guard; 0: it was never written

    @property
    def last(self) -> Range | None:
        return self.ranges[-1] if self.ranges else None

    @property
    def epoch(self) -> int:
        return self.ranges[-1].epoch if self.ranges else 0


class Cut(msgspec.Struct, frozen=True):
    """By how much logs grew on a quorum of disks since the cut before, numbered from 1.

    Where a log stands is the sum of what all cuts say of it. Each cut also says where one in 64 of
    all logs stands, another share each time: a reader can begin with any 64 cuts in a row.
    """

    number: int
    writer: str  # the member's name
    nonce: str
    time_ms: int  # by the writer's clock, but not before the time of the cut before it
    grown: Mapping[LogKey, int]  # entries, above 0; logs that did not grow are not named
    positions: Mapping[LogKey, int] = {}  # behind this cut, of its share of the logs


class CutPositions(msgspec.Struct, frozen=True):
    """Where all logs stand as of a cut: the offset behind the last entry that belongs to it."""

    number: int = 0  # 0: before the first cut
    time_ms: int = 0
    offsets: Mapping[LogKey, int] = {}  # 0 for a log that is not named


class Beaten(NamedTuple):
    """A guard did not hold: somebody else was first."""


class RolledBack(Unavailable):
    """The store is older than what this member has read of it before, as after a restored backup.

    Nothing of it is believed until the member is started again: owners go on, nobody takes over.
    """


class Coordination(Protocol):
    """Where a cluster keeps what its members agree on."""

    on_lapsed: list[Callable[[], None]]
    """Told when the member's lease ran out. Its place is taken anew, maybe another one."""

    on_rolled_back: list[Callable[[str], None]]
    """Told once when the store is found to be older than it was, with what was seen."""

    # --- the cluster and its members ---

    async def settle(self, wanted: ClusterSettings) -> ClusterSettings:
        """The cluster's settings; those that are wanted if there are none yet."""
        ...

    async def register(self, member: Registered) -> None:
        """Adds a member. InvalidState if its name has another key, or the key another name.

        Forbidden if the key was removed.
        """
        ...

    async def registered(self) -> dict[str, Registered]:
        """All members that may take part, by name."""
        ...

    async def remove(self, member: str) -> None:
        """Takes a member out: its key counts for nothing from now on. NotFound if it is not one."""
        ...

    async def begin_disk(self, replica: Replica, boots: int) -> bool:
        """Notes a start of a disk that has counted `boots` before; whether it is up to date.

        False: the disk was started more often than it knows, so it was rolled back to an older copy
        and must not answer for itself any more. The disk counts this start before the call, so that
        a process that dies in between is not taken for a roll-back.
        """
        ...

    async def announce(self, live: LiveMember) -> int:
        """Takes a place in the order of members, under a lease that is kept alive; its number.

        Called again it changes what is said. The place is given up by `close`, and by silence.
        """
        ...

    async def live(self) -> dict[int, LiveMember]:
        """Who runs, by place in the order, as far as leases tell.

        A member may have two places for a moment. One that finds its own place lost or doubled puts
        that right by itself.
        """
        ...

    # --- ranges ---

    async def chains(self) -> dict[int, Chain]:
        """All chains that were ever written."""
        ...

    async def chain(self, partition: int) -> Chain:
        """One chain; without ranges if it was never written."""
        ...

    async def replace(self, chain: Chain) -> Chain | Beaten:
        """Writes a chain in the place of its `revision`; as it is then. May raise Unknown."""
        ...

    # --- cuts ---

    async def latest(self) -> Cut | None:
        """The last cut that was published."""
        ...

    async def publish(self, cut: Cut) -> bool:
        """Publishes a cut behind the one numbered before it; False if somebody was first.

        May raise Unknown.
        """
        ...

    async def cuts(self, first: int, last: int) -> Sequence[Cut]:
        """Cuts that are still kept, in order; a short history."""
        ...

    # --- the rest ---

    async def topics(self) -> dict[str, bytes]:
        """What is kept of the topics, by name."""
        ...

    async def put_topic(self, topic: str, settings: bytes, expected: bytes | None) -> bool:
        """Writes a topic in the place of what was expected; whether that was so."""
        ...

    def changes(self) -> AsyncIterator[str]:
        """Names of what may have changed: `chain/7`, `latest`, `live`, `registered`, `topics`.

        `chains` if it may be any of them. Begins with one hint of each kind.
        """
        ...

    @property
    def keys(self) -> KeyStore:
        """The store itself, to repair what these rules do not believe any more."""
        ...

    @property
    def rolled_back(self) -> str:
        """How the store was seen to be older than before; "" as long as it was not."""
        ...

    @property
    def available(self) -> bool:
        """Whether the last call was answered."""
        ...

    async def close(self) -> None:
        """Gives up the place in the order."""
        ...
