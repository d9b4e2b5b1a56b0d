"""Who is to own a partition, and who has to do something about it: a pure rule.

Every member applies it to what it sees, and acts only where it finds itself to be the actor. With
the same sight there is one actor for a partition at the most. Members that see different things may
act both: the chain of ranges lets one of them win, so the rule need not be right to be safe.

    nobody ever had it         the first of its preferred members that is there opens it
    its owner is gone          the first behind the owner in the ring that has its log takes it,
                               of those that also have its state if there are any
    its owner started anew     the same, beginning with the owner itself
    its owner drains           it hands it to the first preferred member that has all of its log
    its disks are not those    the owner closes the range and opens the next one on the right ones,
      that are wanted          once nobody comes or goes any more
    another one is preferred   after members came or went and it is calm again, the owner hands it
                               over, if that member has all of its log

A member that flaps makes nothing flap: what it lost it gets back when it has stayed for a while.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, TypeAlias

import msgspec

from holdfast.sequence.api import Chain, Range, Replica


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
    is_rebalancing: bool = False  # somebody did since partitions were last where they are preferred
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


def action(chain: Chain, sight: Sight, *, is_open: bool) -> Action | None:
    """What this member is to do about a partition now; `is_open` says that it runs here."""
    last = chain.last
    if not sight.is_settled:
        return None
    if last is None:
        return Take() if _first(preferred(chain.partition, sight), sight) == sight.me else None
    owner = sight.members.get(last.owner)
    if owner is None or owner.nonce != last.nonce:
        return Take() if _taker(chain.partition, last, sight) == sight.me else None
    if last.owner != sight.me:
        return None
    if not is_open:
        return Adopt()
    return _owners_action(chain.partition, last, sight)


def _owners_action(partition: int, last: Range, sight: Sight) -> Action | None:
    if sight.members[sight.me].is_draining:
        to = _fit(partition, last, sight)
        return None if to in (None, sight.me) else HandOver(to)
    if not sight.is_calm:
        return None
    if is_wrong_set(partition, last, sight):
        return HandOver(sight.me)
    if sight.is_rebalancing:
        to = _fit(partition, last, sight)
        return None if to in (None, sight.me) else HandOver(to)
    return None


# --- who is preferred, and who has what -------------------------------------------------------


def preferred(partition: int, sight: Sight) -> list[str]:
    """All registered members, the one first that would own the partition if all were there.

    By rendezvous: a member that joins takes from each of the others, and one that leaves gives to
    each. Chance alone would give one member all of four partitions now and then, so the first one
    is bounded: nobody is preferred for more than its share, rounded up.
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


def _has_disk(replica: Replica, sight: Sight) -> bool:
    member = sight.members.get(replica.member)
    return member is not None and member.is_there and member.disk == replica.disk


# --- who acts ---------------------------------------------------------------------------------


def _first(names: list[str], sight: Sight) -> str | None:
    """The first that is there, of those that do not drain if there are any."""
    there = [name for name in names if sight.members[name].is_there]
    staying = [name for name in there if not sight.members[name].is_draining]
    return next(iter(staying or there), None)


def _taker(partition: int, last: Range, sight: Sight) -> str | None:
    """Who takes a partition whose owner is gone: only one that has its log, by the ring.

    A member that also has its state goes first: it opens at once; the others would have to replay.
    """
    fit = {each.member for each in last.replicas if _has_disk(each, sight)}
    ring = [name for name in _ring_from(last.owner, sight) if name in fit]
    full = [
        name
        for name in ring
        if sight.has_all(partition, name) and not sight.members[name].is_draining
    ]
    return _first(full or ring, sight)


def _ring_from(owner: str, sight: Sight) -> Iterator[str]:
    """The members in the order of the ring, beginning with the owner if it is one of them."""
    order = sorted(sight.members, key=lambda name: _place(sight.members[name].key))
    start = order.index(owner) if owner in order else 0
    return iter(order[start:] + order[:start])


def best(partition: int, last: Range, sight: Sight) -> str | None:
    """The most preferred member that is there, stays and keeps the log, all of it or not yet."""
    return next(_candidates(partition, last, sight), None)


def _fit(partition: int, last: Range, sight: Sight) -> str | None:
    """The most preferred of those that have all of the log; unless it drains, one waits for it."""
    for name in _candidates(partition, last, sight):
        if name == sight.me or sight.has_all(partition, name):
            return name
        if not sight.members[sight.me].is_draining:
            return None
    return None


def _candidates(partition: int, last: Range, sight: Sight) -> Iterator[str]:
    replicas = {each.member for each in last.replicas if _has_disk(each, sight)}
    for name in preferred(partition, sight):
        if name in replicas and not sight.members[name].is_draining:
            yield name


def _place(key: str) -> bytes:
    return sha256(bytes.fromhex(key)).digest()


def _score(partition: int, key: str) -> bytes:
    return sha256(b"%d/" % partition + bytes.fromhex(key)).digest()
