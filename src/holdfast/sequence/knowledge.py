"""What members know of a cluster, beside its store; and what a store lacks of it. Pure.

A store that was put back to an older copy lacks what was written after the copy was made. Members
that ran then have read it. What they say is put together here, and held against the store and
against what their disks have seen. Where anything contradicts, nothing is to be written.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.sequence.api import Chain, ClusterSettings, Cut, Registered, Replica
from holdfast.sequence.quorum import quorum_of


class DiskSeen(NamedTuple):
    """What a disk has seen of a partition."""

    promise: int  # the newest epoch that it has promised
    newest: int  # the newest epoch of which it has entries


class Knowledge(msgspec.Struct, frozen=True):
    """What one member knows. Later versions may add fields, and only at the end."""

    member: str
    replica: Replica  # its disk
    boots: int  # starts on that disk
    nonce: str  # of this start
    settings: ClusterSettings
    registered: list[Registered]
    chains: list[Chain]
    seen: dict[int, DiskSeen]  # by partition
    cut: int = 0  # the last that it has read
    cut_nonce: str = ""


class StoredHead(NamedTuple):
    """The last cut of a store."""

    number: int = 0
    nonce: str = ""


class StoredState(msgspec.Struct, frozen=True):
    """What the store has."""

    settings: ClusterSettings | None
    registered: list[Registered]
    removed: list[str]  # keys
    chains: Mapping[int, Chain]
    boots: Mapping[Replica, int]
    head: StoredHead = StoredHead()


class RepairPlan(msgspec.Struct, frozen=True):
    """What is to be written, unless there are problems."""

    problems: list[str]
    settings: ClusterSettings | None  # None: it is there
    registered: list[Registered] | None  # None: it is as it should be
    removed: list[str] | None
    chains: list[Chain]  # each with the revision that it replaces
    boots: dict[Replica, tuple[int, str]]  # with the nonce of the start
    cut: StoredHead | None  # the last one, that members have read

    @property
    def is_empty(self) -> bool:
        """Whether the store lacks nothing."""
        parts = (self.settings, self.registered, self.removed, self.cut)
        return all(each is None for each in parts) and not self.chains and not self.boots


def plan_repair(
    stored: StoredState, known: Sequence[Knowledge], without: Collection[str] = ()
) -> RepairPlan:
    """What a store lacks of what members know; `without` are members that never come back.

    The store was read after the members were asked. In a cluster that is well it lacks nothing.
    """
    assert known, "a member that asks knows something itself"
    problems: list[str] = []
    settings = _settings(stored, known, problems)
    registered = _registered(known, problems)
    _check_answers(registered, known, without, settings, problems)
    chains = [
        chain
        for partition in range(1, settings.partitions + 1)
        if (chain := _chain(partition, stored, known, problems)) is not None
    ]
    wanted = sorted(
        (each for each in registered.values() if each.member not in without),
        key=lambda each: each.member,
    )
    gone = {each.key for each in stored.registered} | {each.key for each in registered.values()}
    gone -= {each.key for each in wanted}
    removed = [*stored.removed, *sorted(gone - {*stored.removed})]
    problems += [
        f"Member {each.member} is known, but its key was removed"
        for each in wanted
        if each.key in stored.removed
    ]
    is_same = {*stored.registered} == {*wanted}
    return RepairPlan(
        problems,
        settings if stored.settings is None else None,
        None if is_same else wanted,
        None if removed == stored.removed else removed,
        chains,
        {
            each.replica: (each.boots, each.nonce)
            for each in known
            if each.boots > stored.boots.get(each.replica, 0)
        },
        _cut(stored, known, problems),
    )


# --- members ----------------------------------------------------------------------------------


def _settings(
    stored: StoredState, known: Sequence[Knowledge], problems: list[str]
) -> ClusterSettings:
    found = [each.settings for each in known] + [stored.settings or known[0].settings]
    if any(each != found[0] for each in found):
        problems.append(
            "The members, or a member and the store, have different settings of the cluster: they"
            " are not of one cluster"
        )
    return found[0]


def _registered(known: Sequence[Knowledge], problems: list[str]) -> dict[str, Registered]:
    """Everybody whom a member knows, by name."""
    members = {each for knowledge in known for each in knowledge.registered}
    found = {each.member: each for each in members}
    if len(found) < len(members):
        problems.append("Members know different keys of one member")
    return found


def _check_answers(
    registered: Mapping[str, Registered],
    known: Sequence[Knowledge],
    without: Collection[str],
    settings: ClusterSettings,
    problems: list[str],
) -> None:
    """Members that may know more than those who answer must be few, and given up for ever."""
    answered = {each.member for each in known}
    missing = registered.keys() - answered
    for names, text in (
        (
            missing - {*without},
            "does not answer, and may know what the others do not. Start it, or name it as one that"
            " never comes back: --without",
        ),
        ({*without} & answered, "answers: it cannot be left out"),
        ({*without} - registered.keys(), "is unknown to all members: it cannot be left out"),
        (
            _disputed(registered, known) - {*without},
            "is a member for some, and not for others. If it was removed: --without",
        ),
    ):
        problems += [f"Member {name} {text}" for name in sorted(names)]
    replicas = min(settings.replicas, len(registered))
    spare = replicas - quorum_of(replicas)
    if len(missing) > spare:
        problems.append(
            f"{len(missing)} members do not answer, but at most {spare} may be missing: what was"
            " acknowledged may be on their disks alone"
        )


def _disputed(registered: Mapping[str, Registered], known: Sequence[Knowledge]) -> set[str]:
    rosters = [{each.member for each in knowledge.registered} for knowledge in known]
    return {name for name in registered if not all(name in each for each in rosters)}


# --- chains -----------------------------------------------------------------------------------


def _chain(
    partition: int, stored: StoredState, known: Sequence[Knowledge], problems: list[str]
) -> Chain | None:
    """The chain to be written; None if the store has the newest one."""
    there = stored.chains.get(partition, Chain(partition))
    found = [(each.member, chain) for each in known for chain in each.chains]
    chains = [(who, chain) for who, chain in found if chain.partition == partition and chain.last]
    best = max((chain for _, chain in chains), key=_age, default=there)
    newest = there if there.epoch >= best.epoch else best
    for who, chain in [*chains, ("the store", there)]:
        epoch = _contradiction(chain, newest)
        if epoch:
            problems.append(
                f"Partition {partition} has two different ranges of epoch {epoch}: one is known to"
                f" {who}"
            )
            return None
    _check_seen(newest, known, problems)
    if newest is there:
        return None
    return msgspec.structs.replace(newest, revision=there.revision)


def _age(chain: Chain) -> tuple[int, int]:
    return chain.epoch, chain.revision


def _contradiction(chain: Chain, other: Chain) -> int:
    """The epoch of which two chains have different ranges; 0 if there is none.

    The disks of closed ranges change, and the oldest ranges are pruned: that is no contradiction.
    """
    ranges = {each.epoch: each for each in other.ranges}
    for each in chain.ranges:
        its = ranges.get(each.epoch)
        if its is not None and (its.owner, its.nonce, its.starts) != (
            each.owner,
            each.nonce,
            each.starts,
        ):
            return each.epoch
    return 0


def _check_seen(chain: Chain, known: Sequence[Knowledge], problems: list[str]) -> None:
    """No disk has seen more than the chain, and a quorum of its disks was asked."""
    for each in known:
        seen = each.seen.get(chain.partition)
        if seen is not None and (seen.promise > chain.epoch + 1 or seen.newest > chain.epoch):
            problems.append(
                f"The disk of {each.member} has seen epoch {max(seen)} of partition"
                f" {chain.partition}, but no member that answers knows a range after {chain.epoch}"
            )
    if chain.last is not None:
        asked = _asked(chain.last.replicas, known)
        needed = quorum_of(len(chain.last.replicas))
        if asked < needed:
            problems.append(
                f"{asked} disks of partition {chain.partition} answer, but {needed} are needed"
            )


def _asked(replicas: Iterable[Replica], known: Sequence[Knowledge]) -> int:
    answering = {each.replica for each in known}
    return sum(each in answering for each in replicas)


# --- cuts -------------------------------------------------------------------------------------


def _cut(stored: StoredState, known: Sequence[Knowledge], problems: list[str]) -> StoredHead | None:
    """The last cut that a member has read, if the store does not have it."""
    heads = [StoredHead(each.cut, each.cut_nonce) for each in known if each.cut]
    newest = max([*heads, stored.head], default=StoredHead())
    same = {each for each in [*heads, stored.head] if each.number == newest.number}
    if newest.number and len(same) > 1:
        problems.append(f"There are two different cuts {newest.number}")
    return None if newest == stored.head else newest


def cut_problems(known: Sequence[Knowledge], cuts: Sequence[Cut]) -> list[str]:
    """Members that have read another cut of a number than the ones that are to be written."""
    nonces = {each.number: each.nonce for each in cuts}
    return [
        f"Member {each.member} has read another cut {each.cut} than the member that has read the"
        " most"
        for each in known
        if each.cut and nonces.get(each.cut, each.cut_nonce) != each.cut_nonce
    ]
