"""A group whose messages are delivered by hand: a test says what is read, and reads what is sent.

Members here run whatever they are told to at once, and let go at once. The transcript is a table:
who did what, one line a message or effect.
"""

from collections.abc import Sequence

from holdfast.groups.api import Entry, Generation, MemberId, NewPartition
from holdfast.groups.core import GroupCore
from holdfast.groups.effects import (
    Alarm,
    Durable,
    Effect,
    EpochStarted,
    LeftOut,
    Send,
    StartRun,
    StopRun,
)
from holdfast.groups.merge import Verdict, merge
from holdfast.groups.messages import (
    Change,
    Declared,
    Finished,
    NewEpoch,
    Parked,
    Proposed,
    RebalanceAnswer,
    Regular,
    SyncMessage,
    UpdateEpoch,
    encode,
)
from holdfast.groups.state import GroupState
from holdfast.limits import GROUP_TICK_MS


class GroupStory:
    """Members, their log, and what happened."""

    def __init__(self, tokens: str) -> None:
        self.declared = [NewPartition(each) for each in tokens.split()]
        self.log: list[SyncMessage] = []
        self.cores: dict[MemberId, GroupCore] = {}
        self.positions: dict[MemberId, int] = {}
        self.lines: list[str] = []
        self.withheld: list[SyncMessage] = []  # sent, but not in the log
        self.is_withholding: set[MemberId] = set()
        self.now_ms = 0
        self.state = GroupState()  # the fold of all that is in the log

    # --- what a test does ---------------------------------------------------------------------

    def start(self, *members: MemberId) -> None:
        """Processes start: they read the log back."""
        for each in members:
            core = GroupCore(each, self.declared)
            core.tick(self.now_ms)
            entries = [Entry(at, 0, encode(message)) for at, message in enumerate(self.log)]
            self.cores[each], self.positions[each] = core, len(self.log)
            self.do(each, core.restore(entries))

    def die(self, *members: MemberId) -> None:
        for each in members:
            del self.cores[each]
            self.lines.append(f"{each} dies")

    def generation(self, number: int, *members: MemberId) -> None:
        """The membership says who is there; the first one leads."""
        self.lines.append(f"generation {number}: {' '.join(members)}")
        for each in members:
            if each in self.cores:
                self.do(each, self.cores[each].joined(Generation(number, members[0], members)))

    def settle(self, ticks: int = 0) -> None:
        """Everybody reads and says what there is, until nothing is left; then time passes."""
        for each in self.cores:
            self.say(each)
        while any(self.positions[each] < len(self.log) for each in self.cores):
            for each in list(self.cores):
                self.read(each)
                self.say(each)
        for _ in range(ticks):
            self.tick()
            self.settle()

    def tick(self, ms: int = GROUP_TICK_MS) -> None:
        self.now_ms += ms
        for each in list(self.cores):
            self.do(each, self.cores[each].tick(self.now_ms))

    def read(self, member: MemberId, count: int = 1_000) -> None:
        """A member reads what it has not read, or so many messages of it."""
        for at in range(self.positions[member], min(len(self.log), self.positions[member] + count)):
            self.positions[member] = at + 1
            entry = Entry(at, 0, encode(self.log[at]))
            self.do(member, self.cores[member].read(entry))

    def say(self, member: MemberId) -> None:
        """What a member wants to say goes into the log."""
        self.do(member, self.cores[member].flush())

    def append(self, message: SyncMessage) -> Verdict:
        """A message gets into the log; what becomes of it."""
        offset = len(self.log)
        self.log.append(message)
        verdict = merge(self.state, offset, message).verdict
        line = f"{message.member} {shown(message)}"
        self.lines.append(line if verdict is Verdict.ACCEPTED else f"{line} -> {verdict.value}")
        return verdict

    def finish(self, member: MemberId, token: str, *children: NewPartition) -> None:
        self.do(member, self.cores[member].finished(token, children))
        self.say(member)

    # --- what a test looks at -----------------------------------------------------------------

    def owners(self) -> dict[str, str]:
        """Each partition: its owner, whom it is shared with, and its status."""
        return {
            token: f"{each.owner}{' > ' + each.target if each.target else ''} {each.status.name}"
            for token, each in sorted(self.state.partitions.items())
        }

    def running(self) -> dict[MemberId, str]:
        return {each: " ".join(sorted(core.running)) for each, core in self.cores.items()}

    def told(self) -> list[str]:
        """The transcript since it was last asked for."""
        lines, self.lines = self.lines, []
        return lines

    def do(self, member: MemberId, effects: Sequence[Effect]) -> None:
        core = self.cores[member]
        for effect in effects:
            match effect:
                case Send() if member in self.is_withholding:
                    self.withheld.append(effect.message)
                case Send():
                    self.append(effect.message)
                case StartRun():
                    at = "" if effect.offset is None else f" from {effect.offset}"
                    self.lines.append(f"  {member} runs {effect.token}{at}")
                    core.started(effect.token)
                case StopRun():
                    self.lines.append(f"  {member} stops {effect.token}")
                    self.do(member, core.released(effect.token))
                case EpochStarted() | Durable():
                    pass
                case LeftOut():
                    self.lines.append(f"  {member} is left out")
                case Alarm():
                    self.lines.append(f"  ALARM {effect.text}")
                case _:
                    pass


def shown(message: SyncMessage) -> str:
    """A message in few words."""
    match message:
        case UpdateEpoch():
            return f"UPDATE_EPOCH {message.epoch} generation {message.generation}"
        case NewEpoch():
            names = message.snapshot.names
            shares = [
                f"{row.token}>{names[row.target]}"
                for row in message.snapshot.partitions
                if row.target >= 0
            ]
            return " ".join([f"NEW_EPOCH {message.epoch}", *shares])
        case RebalanceAnswer():
            kind = f"REBALANCE_ANSWER {message.epoch} generation {message.generation}"
            return " ".join([kind, *map(_change, message.changes)])
        case Regular():
            return " ".join([f"REGULAR {message.epoch}", *map(_change, message.changes)])


def _change(change: Change) -> str:
    match change:
        case Declared():
            return f"declared:{','.join(each.token for each in change.partitions)}"
        case Finished() if change.children:
            return f"finished:{change.token}({','.join(each.token for each in change.children)})"
        case Parked():
            return f"parked:{change.token}({change.error})"
        case Proposed():
            return f"proposed:{change.token}>{change.target}"
        case _:
            return f"{type(change).__name__.lower().removeprefix('run')}:{change.token}"
