"""Who is to own a partition, and who has to do something about it: a pure rule.

Every member applies it to what it sees, and acts only where it finds itself to be the actor. With
the same sight there is one actor for a partition at the most. Members that see different things may
act both: the chain of ranges lets one of them win, so the rule need not be right to be safe.

    nobody ever had it         the least loaded of the members that are to keep its log opens it
    its owner is gone          the least loaded that has its log takes it, of those that also have
                               its state if there are any
    nobody takes it for long   any that has its log: the one that should may not reach etcd, or sees
                               something else
    its owner started anew     the owner itself, unless others have the state and it has not
    its owner drains           it hands it to the least loaded that has all of its log
    its disks are not those    the owner closes the range and opens the next one on the right ones,
      that are wanted          once nobody comes or goes any more
    its owner keeps no log     it hands it to the least loaded that has all of its log: it took the
                               partition over, and its disk was then not one of the right ones
    another one has too few    after members came or went and it is calm again, the owner hands it
                               over, if that narrows the difference and the other has all of its log

Who is the least loaded, and what narrows a difference, says the rule of groups (`groups.sharing`):
survivors keep theirs. The chains of ranges are the log of who owns what in which epoch, which a
group would keep in its sync log.

A member that flaps makes nothing flap: it gets its share again when it has stayed for a while.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import NamedTuple, TypeAlias

import msgspec

from holdfast.groups.sharing import placed
from holdfast.sequence.api import Chain, Range, Replica
from holdfast.sequence.quorum import quorum_of


class MemberSight(NamedTuple):
    """A registered member, as another one sees it."""

    key: str  # public, in hex
    disk: str | None = None  # that it has, as far as is known
    nonce: str | None = None  # of the start that runs and is heard; None: it is not heard
    is_draining: bool = False

    @property
    def is_there(self) -> bool:
        return self.nonce is not None


class Sight(msgspec.Struct, frozen=True):
    """What one member sees of the cluster."""

    me: str
    members: Mapping[str, MemberSight]  # those that are registered, and this one among them
    replicas: int  # of a partition, where there are so many members
    partitions: int  # of the cluster
    is_settled: bool = True  # it has been there long enough to know who is away
    is_calm: bool = False  # nobody has come or gone for a while
    is_rebalancing: bool = False  # somebody did since partitions were last shared evenly
    has_all: Callable[[int, str], bool] = lambda partition, member: True
    """Whether a member has all of a partition's log, as its owner knows."""


class Take(NamedTuple):
    """The partition has no owner that runs: take it."""


class Adopt(NamedTuple):
    """The open range is this member's own: go on in it."""


class HandOver(NamedTuple):
    """Close it here, and open the next range for a member, which may be this one."""

    to: str


Action: TypeAlias = Take | Adopt | HandOver


class PlacementPlan:
    """Who is to own each partition, as the chains and a sight of the members say.

    It is made when it is first asked for: at most looks nobody has anything to do.
    """

    def __init__(self, chains: Callable[[], Iterable[Chain]], sight: Sight) -> None:
        self._chains = chains
        self._sight = sight

    def owner(self, partition: int) -> str | None:
        """None: nobody can."""
        return self._owners.get(partition)

    @cached_property
    def _owners(self) -> dict[int, str]:
        owners: dict[int, str] = {}
        able: dict[int, list[str]] = {}
        ready: dict[int, list[str]] = {}
        for chain in self._chains():
            partition, last = chain.partition, chain.last
            names = _able(partition, last, self._sight)
            full = [each for each in names if self._sight.has_all(partition, each)]
            owner = "" if last is None else last.owner
            if last is not None and not _runs(last, self._sight) and owner in names:
                # It started anew: its partition is its own again, unless others have the state.
                names = [owner] if owner in full or not full else full
            owners[partition], able[partition], ready[partition] = owner, names, full
        return placed(owners, able, ready)


def _runs(last: Range, sight: Sight) -> bool:
    """Whether the start of a member that opened a range is there."""
    owner = sight.members.get(last.owner)
    return owner is not None and owner.nonce == last.nonce


def _able(partition: int, last: Range | None, sight: Sight) -> list[str]:
    """Who is there and keeps the log, of those that do not drain if there are any."""
    replicas = wanted_set(partition, None, sight) if last is None else last.replicas
    there = [each.member for each in replicas if _has_disk(each, sight)]
    return [each for each in there if not sight.members[each].is_draining] or there


def is_orphan(last: Range | None, sight: Sight) -> bool:
    """Whether a partition has no owner that runs."""
    return last is None or not _runs(last, sight)


def action(
    chain: Chain, sight: Sight, plan: PlacementPlan, *, is_open: bool, is_overdue: bool = False
) -> Action | None:
    """What this member is to do about a partition now; `is_open` says that it runs here.

    `is_overdue`: it has had no owner for so long that its actor is not waited for.
    """
    last = chain.last
    if not sight.is_settled:
        return None
    if last is None or not _runs(last, sight):
        is_mine = plan.owner(chain.partition) == sight.me
        if not is_mine and is_overdue:
            is_mine = sight.me in _able(chain.partition, last, sight)
        return Take() if is_mine else None
    if last.owner != sight.me:
        return None
    if not is_open:
        return Adopt()
    return _owners_action(chain.partition, last, sight, plan)


def _owners_action(partition: int, last: Range, sight: Sight, plan: PlacementPlan) -> Action | None:
    if sight.members[sight.me].is_draining:
        return _hand_over(partition, sight, plan)
    if not sight.is_calm:
        return None
    if is_wrong_set(partition, last, sight):
        return HandOver(sight.me)
    is_kept = any(each.member == sight.me for each in last.replicas)
    return _hand_over(partition, sight, plan) if sight.is_rebalancing or not is_kept else None


def _hand_over(partition: int, sight: Sight, plan: PlacementPlan) -> HandOver | None:
    """To whom the plan gives it, as soon as that member has all of it."""
    to = plan.owner(partition)
    if to is None or to == sight.me or sight.members[to].is_draining:
        return None
    return HandOver(to) if sight.has_all(partition, to) else None


# --- whose disks keep the log -----------------------------------------------------------------


def preferred(partition: int, sight: Sight) -> list[str]:
    """All registered members, those first whose disks are to keep the log of the partition.

    By rendezvous: a member that joins takes from each of the others, and one that leaves gives to
    each. Chance alone would put one member first for all of four partitions now and then, so that
    is bounded: nobody is first for more than its share, rounded up.
    """
    names = {each.key: name for name, each in sight.members.items()}
    first = _first_keys(sight.partitions, tuple(sorted(names)))[partition - 1]
    order = sorted(names, key=lambda key: (key != first, _score(partition, key)))
    return [names[key] for key in order]


@lru_cache(maxsize=8)
def _first_keys(partitions: int, keys: tuple[str, ...]) -> list[str]:
    """By partition, the key with the lowest score of those that have not got their share yet."""
    left = dict.fromkeys(keys, -(-partitions // len(keys)))
    firsts: list[str] = []
    for partition in range(1, partitions + 1):
        first = min((key for key in keys if left[key]), key=lambda key: _score(partition, key))
        left[first] -= 1
        firsts.append(first)
    return firsts


def wanted_set(partition: int, last: Range | None, sight: Sight) -> tuple[Replica, ...]:
    """The disks that the next range of a partition is to be on.

    A registered member that is away keeps its place, with the disk that it had: it comes back, or
    somebody removes it. It is given no place that it did not have.
    """
    known = {each.member: each.disk for each in (last.replicas if last else ())}
    found: list[Replica] = []
    for name in preferred(partition, sight):
        member = sight.members[name]
        disk = (member.disk if member.is_there else None) or known.get(name)
        if disk is not None and len(found) < sight.replicas:
            found.append(Replica(name, disk))
    return tuple(sorted(found))


def is_wrong_set(partition: int, last: Range, sight: Sight) -> bool:
    """Whether a range is on other disks than it should be, and the right ones are there."""
    wanted, found = set(wanted_set(partition, last, sight)), set(last.replicas)
    return wanted != found and all(sight.members[each.member].is_there for each in wanted - found)


def is_missing_replicas(last: Range, sight: Sight) -> bool:
    """Whether a range has fewer disks in use than it should have."""
    there = [each for each in last.replicas if _has_disk(each, sight)]
    return len(there) < min(sight.replicas, max(len(sight.members), len(last.replicas)))


def is_missing_quorum(last: Range, sight: Sight) -> bool:
    """Whether a range has too few disks in use to commit anything."""
    there = [each for each in last.replicas if _has_disk(each, sight)]
    return len(there) < quorum_of(len(last.replicas))


def _has_disk(replica: Replica, sight: Sight) -> bool:
    member = sight.members.get(replica.member)
    return member is not None and member.is_there and member.disk == replica.disk


def _score(partition: int, key: str) -> bytes:
    return sha256(b"%d/" % partition + bytes.fromhex(key)).digest()
