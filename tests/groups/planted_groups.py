"""Faults that are planted into the protocol one at a time: the checks have to find each of them."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.groups import changes, core_leading, core_runs, merge, read_back, rebalance, removal
from holdfast.groups.effects import Effect
from holdfast.groups.merge import Merged, Verdict
from holdfast.groups.messages import NewEpoch, Regular, Released
from holdfast.groups.sharing import PlannedMove, least_loaded
from holdfast.groups.state import GroupState

Plant = Callable[[pytest.MonkeyPatch], None]


def run_before_read_back(patch: pytest.MonkeyPatch) -> None:
    """A member runs what is shared with it before it has read its own pick."""
    settle = core_runs.LocalRuns.settle

    def hasty(
        self: core_runs.LocalRuns, state: GroupState, token: str, is_in: bool
    ) -> Iterable[Effect]:
        partition = state.partitions.get(token)
        member = self._member  # pyright: ignore[reportPrivateUsage]
        is_offered = partition is not None and partition.is_released
        if is_in and partition is not None and is_offered and partition.target == member:
            taken = replace(partition, owner=member, target="", is_released=False)
            state.partitions[token] = taken
            try:
                return list(settle(self, state, token, is_in))
            finally:
                state.partitions[token] = partition
        return settle(self, state, token, is_in)

    patch.setattr(core_runs.LocalRuns, "settle", hasty)


def accept_stale_epochs(patch: pytest.MonkeyPatch) -> None:
    """A message of an older epoch counts in the present one."""
    regular = merge._regular  # pyright: ignore[reportPrivateUsage]

    def lenient(state: GroupState, message: Regular) -> Merged:
        is_stale = message.epoch < state.epoch
        return regular(state, replace(message, epoch=state.epoch, whole=message.whole or is_stale))

    patch.setattr(merge, "_regular", lenient)


def no_gap_check(patch: pytest.MonkeyPatch) -> None:
    """What follows a lost message counts."""
    _patch_count(patch, Verdict.GAP)


def no_duplicate_check(patch: pytest.MonkeyPatch) -> None:
    """What was read already counts again."""
    _patch_count(patch, Verdict.DUPLICATE)


def _patch_count(patch: pytest.MonkeyPatch, forgiven: Verdict) -> None:
    count = merge._count  # pyright: ignore[reportPrivateUsage]

    def lenient(member: Any, counter: int, is_whole: bool) -> Verdict:
        verdict = count(member, counter, is_whole)
        if verdict is forgiven:
            member.has_gap = False
            return Verdict.ACCEPTED
        return verdict

    patch.setattr(merge, "_count", lenient)


def share_during_rebalance(patch: pytest.MonkeyPatch) -> None:
    """Children that an answer tells of are shared at once."""
    create = changes.create

    def eager(state: GroupState, new: Any, owner: str) -> None:
        going, state.rebalance = state.rebalance, None
        create(state, new, owner)
        state.rebalance = going

    patch.setattr(changes, "create", eager)


def any_parent_creates(patch: pytest.MonkeyPatch) -> None:
    """The first parent to end creates the child of a merge, not the smallest."""
    patch.setattr(changes, "creates", lambda *_: True)


def any_epoch_counts(patch: pytest.MonkeyPatch) -> None:
    """A second NEW_EPOCH of a rebalance counts as well as the first."""

    _patch_judge(patch, lambda *_: Verdict.ACCEPTED)


def _patch_judge(
    patch: pytest.MonkeyPatch, judge: Callable[[GroupState, NewEpoch], Verdict]
) -> None:
    """For those who read on and for those who read back."""
    patch.setattr(merge, "judge_epoch", judge)
    patch.setattr(read_back, "judge_epoch", judge)


def late_answers_are_lost(patch: pytest.MonkeyPatch) -> None:
    """An epoch counts though an answer came between the state that it was made from and it."""
    judge = merge.judge_epoch

    def lenient(state: GroupState, message: NewEpoch) -> Verdict:
        if state.rebalance is not None and message.snapshot.rebalance is not None:
            state.rebalance.answered &= {*message.snapshot.rebalance.answered}
        return judge(state, message)

    _patch_judge(patch, lenient)
    patch.setattr(core_leading, "GROUP_ANSWER_MS_MAX", 30)  # answers are often late


def survivors_are_shuffled(patch: pytest.MonkeyPatch) -> None:
    """Every epoch shares everything anew."""
    kept = rebalance._kept  # pyright: ignore[reportPrivateUsage]

    def shuffled(partition: Any, members: Any, leader: str) -> Any:
        partition = kept(partition, members, leader)
        return replace(partition, owner="") if partition.is_live else partition

    patch.setattr(rebalance, "_kept", shuffled)


def release_before_it_is_drained(patch: pytest.MonkeyPatch) -> None:
    """An owner hands over what it still runs."""
    said = core_runs.LocalRuns.changes

    def hasty(self: core_runs.LocalRuns, state: GroupState, token: str) -> list[Any]:
        run, partition = self.runs.get(token), state.partitions.get(token)
        is_asked = run is not None and run.phase is core_runs.RunPhase.STOPPING
        if is_asked and partition is not None and partition.target and not partition.is_released:
            return [Released(token)]
        return said(self, state, token)

    patch.setattr(core_runs.LocalRuns, "changes", hasty)


def children_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """A child runs though a parent does."""
    patch.setattr(GroupState, "is_finished", lambda *_: True)


def finished_ones_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A finished partition is removed though others refer to it."""
    patch.setattr(removal, "_is_redundant", lambda *_: True)


def the_watermark_goes_back(patch: pytest.MonkeyPatch) -> None:
    """The low watermark is the smallest of the moment."""

    def lowest(state: GroupState) -> None:
        state.watermark = state._watermarks.lowest()  # pyright: ignore[reportPrivateUsage]

    patch.setattr(GroupState, "raise_watermark", lowest)


def orphans_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The leader keeps in its share section what it shared with a member that died."""
    kept = rebalance._kept  # pyright: ignore[reportPrivateUsage]

    def forgetful(partition: Any, members: Any, leader: str) -> Any:
        return partition if partition.owner in members else kept(partition, members, leader)

    patch.setattr(rebalance, "_kept", forgetful)


def refused_changes_are_not_said_again(patch: pytest.MonkeyPatch) -> None:
    """What the fold refused is taken for done."""
    patch.setattr("holdfast.groups.core_saying.Saying.refused", lambda *_: None)
    patch.setattr("holdfast.groups.core_saying.Saying.give_up", lambda *_: None)


def every_owner_moves_what_it_likes(patch: pytest.MonkeyPatch) -> None:
    """Proposals are not weighed against those that were read before."""
    patch.setattr(
        changes,
        "is_wanted_move",
        lambda state, partition, target: target in state.members and not partition.target,
    )
    patch.setattr(
        "holdfast.groups.core.moves",
        lambda state, member, _: [
            PlannedMove(token, least_loaded(state.loads, state.members))
            for token in sorted(state.owned.get(member, ()))[:1]
            if state.partitions[token].is_live and not state.partitions[token].target
        ],
    )


PLANTED: tuple[Plant, ...] = (
    run_before_read_back,
    accept_stale_epochs,
    no_gap_check,
    no_duplicate_check,
    share_during_rebalance,
    any_parent_creates,
    any_epoch_counts,
    late_answers_are_lost,
    survivors_are_shuffled,
    release_before_it_is_drained,
    children_do_not_wait,
    finished_ones_go_at_once,
    the_watermark_goes_back,
    orphans_are_forgotten,
    refused_changes_are_not_said_again,
    every_owner_moves_what_it_likes,
)
