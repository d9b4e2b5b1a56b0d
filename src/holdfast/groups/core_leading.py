"""What the leader of a generation does beside being a member: rebalances, epochs, checkpoints."""

from collections.abc import Sequence

from holdfast.groups.api import Generation, MemberId, NewPartition
from holdfast.groups.messages import NewEpoch, UpdateEpoch, encode
from holdfast.groups.rebalance import new_epoch
from holdfast.groups.snapshot import snapshot_of
from holdfast.groups.state import GroupState
from holdfast.limits import (
    GROUP_ANSWER_MS_MAX,
    GROUP_CHECKPOINT_BYTES,
    GROUP_CHECKPOINT_RATIO,
)


class Leading:
    """The leader's part of one member."""

    def __init__(self, member: MemberId) -> None:
        self._member = member
        self.checkpoint_bytes = GROUP_CHECKPOINT_BYTES
        self.bytes_since = 0  # read since a message carried all of the state
        self._carried_bytes = 0  # of the last one that was made here
        self._asked_ms = 0  # when the rebalance under way was read

    def begins(self, state: GroupState, generation: Generation | None) -> bool:
        """Whether a rebalance for our generation is to begin."""
        return (
            generation is not None
            and generation.leader == self._member
            and generation.number > state.generation
        )

    def begin(self, state: GroupState, generation: Generation | None, counter: int) -> UpdateEpoch:
        """Names the generation; from where it is read on, nothing moves."""
        assert generation is not None, "a rebalance is of a generation"
        return UpdateEpoch(
            state.epoch, self._member, counter, generation.number, generation.members
        )

    def update_read(self, message: UpdateEpoch, now_ms: int) -> None:
        """A rebalance has begun, or the log was summed up."""
        if message.members:
            self._asked_ms = now_ms
        else:
            self.bytes_since = 0

    def epoch_read(self) -> None:
        """The log was summed up by a new epoch."""
        self.bytes_since = 0

    def ends(self, state: GroupState, generation: Generation | None, now_ms: int) -> bool:
        """Whether all have answered, or those who did not have had their time."""
        going = state.rebalance
        if going is None or generation is None or going.leader != self._member:
            return False
        if generation.number != going.generation or self._member not in going.answered:
            return False
        is_late = now_ms - self._asked_ms >= GROUP_ANSWER_MS_MAX
        return is_late or going.answered.issuperset(going.members)

    def new_epoch(
        self, state: GroupState, declared: Sequence[NewPartition], counter: int
    ) -> NewEpoch:
        """Ends the rebalance; everybody who answered is in."""
        snapshot = new_epoch(state, self._member, declared)
        message = NewEpoch(snapshot.epoch, self._member, counter, snapshot.generation, snapshot)
        self._carried_bytes = len(encode(message))
        return message

    def is_checkpoint_due(self, state: GroupState) -> bool:
        """Whether what a member that starts now has to read has become long."""
        enough = max(self.checkpoint_bytes, GROUP_CHECKPOINT_RATIO * self._carried_bytes)
        return state.leader == self._member and self.bytes_since > enough

    def checkpoint(self, state: GroupState, counter: int) -> UpdateEpoch:
        """All of the state, so that the log before can be discarded."""
        message = UpdateEpoch(
            state.epoch, self._member, counter, state.generation, snapshot=snapshot_of(state)
        )
        self._carried_bytes = len(encode(message))
        return message
