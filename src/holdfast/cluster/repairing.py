"""Repairs an etcd that was put back to an older copy, from what the members know."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol

from holdfast.cluster.errands import Messenger
from holdfast.cluster.roster import Roster
from holdfast.errors import HoldfastError, InvalidState
from holdfast.gateway.cluster.shapes import ClusterRepair
from holdfast.limits import CLUSTER_REPAIR_MS_MAX
from holdfast.logs import log
from holdfast.sequence.api import Coordination, Cut
from holdfast.sequence.knowledge import (
    Knowledge,
    RepairPlan,
    StoredState,
    cut_problems,
    plan_repair,
)
from holdfast.sequence.repairing import CUTS_WRITTEN_MAX, read_stored, write_back


class RepairParts(Protocol):
    """The parts of a member that a repair is made of."""

    coordination: Coordination
    roster: Roster
    messenger: Messenger


async def repair(member: RepairParts, *, confirm: bool, without: Collection[str]) -> ClusterRepair:
    """What etcd lacks of what the members know; written back if it is confirmed.

    InvalidState if it is confirmed and the members do not answer, or contradict one another.
    """
    known = await _ask_all(member)
    stored = await read_stored(member.coordination.keys)
    plan = plan_repair(stored, known, without)
    cuts = await _cuts(member, plan, known)
    problems = plan.problems + cut_problems(known, cuts)
    if plan.cut is not None and (not cuts or cuts[-1].number != plan.cut.number):
        problems.append(f"No member gives cut {plan.cut.number}, though one has read it")
    changes = _changes(plan, stored)
    if confirm and problems:
        raise InvalidState("Nothing was written to etcd: " + "; ".join(problems), problems=problems)
    if confirm and not plan.is_empty:
        await write_back(member.coordination.keys, plan, cuts)
        log.warning("etcd repaired", changes=changes)
    return ClusterRepair(
        confirm and not plan.is_empty, sorted(each.member for each in known), changes, problems
    )


async def _ask_all(member: RepairParts) -> list[Knowledge]:
    """What all members know that answer; those are asked that anybody is known to be."""

    async def ask(name: str) -> Knowledge | None:
        try:
            async with asyncio.timeout(CLUSTER_REPAIR_MS_MAX / 1_000):
                return await member.messenger.knowledge(name)
        except (TimeoutError, HoldfastError) as error:
            log.info("member does not say what it knows", member=name, why=str(error))
            return None

    found = await asyncio.gather(*(ask(name) for name in sorted(member.roster.registered)))
    return [each for each in found if each is not None]


async def _cuts(member: RepairParts, plan: RepairPlan, known: Sequence[Knowledge]) -> Sequence[Cut]:
    """The longest row of cuts that ends with the last one, from a member that has read that."""
    best: Sequence[Cut] = ()
    for each in known:
        if plan.cut is not None and (each.cut, each.cut_nonce) == plan.cut:
            try:
                found = await _row(member.messenger, each.member, each.cut)
            except HoldfastError as error:
                log.info("cuts not given", member=each.member, why=error.message)
                continue
            best = max(best, found, key=len)
    return best


async def _row(messenger: Messenger, name: str, number: int) -> Sequence[Cut]:
    """The last cuts that a member keeps in a row; where it missed some, fewer of them."""
    for first in range(max(number - CUTS_WRITTEN_MAX + 1, 1), number + 1):
        found = await messenger.cuts_of(name, first, number)
        if found and found[-1].number == number:
            return found
    return ()


def _changes(plan: RepairPlan, stored: StoredState) -> list[str]:
    """What is to be written, for people."""
    found: list[str] = []
    if plan.settings is not None:
        found.append(f"settings: {plan.settings.partitions} partitions")
    if plan.registered is not None:
        found.append(f"members: {', '.join(each.member for each in plan.registered)}")
    if plan.removed is not None:
        count = len(plan.removed) - len(stored.removed)
        found.append(f"removed keys: {count} more")
    for chain in plan.chains:
        there = stored.chains.get(chain.partition)
        before = 0 if there is None else there.epoch
        owner = "" if chain.last is None else chain.last.owner
        found.append(f"partition {chain.partition}: epoch {before} -> {chain.epoch}, owner {owner}")
    found += [
        f"disk of {replica.member}: {boots} starts" for replica, (boots, _) in plan.boots.items()
    ]
    if plan.cut is not None:
        found.append(f"last cut: {stored.head.number} -> {plan.cut.number}")
    return found
