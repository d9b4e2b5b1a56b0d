"""One member of a group, pure and synchronous: what happened goes in, what is to be done comes out.

The shell feeds what it reads, what its work reports and the time, and does the effects in order.
Messages come out of `flush` and `tick` alone: `flush` at the end of a turn of the loop has what
others wait for, `tick` has commits as well.
"""

from collections.abc import Sequence

from holdfast.groups.api import Entry, Generation, MemberId, NewPartition, Offset
from holdfast.groups.effects import Effect
from holdfast.groups.messages import Ask


class GroupCore:
    """A member's view of the sync log, what it runs, and what it has to say."""

    def __init__(self, member: MemberId, partitions: Sequence[NewPartition] = ()) -> None:
        """`partitions` are those that are to exist; more can be declared later."""
        self.member = member
        self._declared = tuple(partitions)

    def restore(self, entries: Sequence[Entry], is_complete: bool = True) -> list[Effect]:
        """Reads back all that the log keeps, at the start or after falling behind its beginning.

        `is_complete`: nothing was discarded before the first entry. DataLoss where entries are
        missing.
        """
        raise NotImplementedError

    def joined(self, generation: Generation) -> list[Effect]:
        """The membership has a new generation."""
        raise NotImplementedError

    def read(self, entry: Entry) -> list[Effect]:
        """The next entry of the sync log."""
        raise NotImplementedError

    def declare(self, partitions: Sequence[NewPartition]) -> list[Effect]:
        """These partitions are to exist."""
        raise NotImplementedError

    def started(self, token: str) -> list[Effect]:
        """The work on a partition has begun."""
        raise NotImplementedError

    def committed(self, token: str, offset: Offset, watermark: int | None = None) -> list[Effect]:
        """The work on a partition came so far; `Durable` tells when that has been read back."""
        raise NotImplementedError

    def finished(self, token: str, children: Sequence[NewPartition] = ()) -> list[Effect]:
        """The work on a partition is done, and all of it is committed."""
        raise NotImplementedError

    def failed(self, token: str, error: str) -> list[Effect]:
        """The work on a partition ended with an error: it is parked, and retried later."""
        raise NotImplementedError

    def released(self, token: str, offset: Offset = None) -> list[Effect]:
        """Nothing runs for a partition any more, as `StopRun` asked; None: as committed last."""
        raise NotImplementedError

    def ask(self, ask: Ask) -> list[Effect]:
        """Somebody wants a partition moved, parked or resumed."""
        raise NotImplementedError

    def flush(self) -> list[Effect]:
        """What others wait for, in one message."""
        raise NotImplementedError

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed: everything that is to be sent, retries, what was not heard of."""
        raise NotImplementedError
