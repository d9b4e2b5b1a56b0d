"""Where the operations of a transaction are done, and which partition decides it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.engine.jobs.values import Completion, NewJob
from holdfast.engine.messages.values import NewMessage as Message
from holdfast.engine.processes.values import NewInstance
from holdfast.engine.transactions.values import COMPLETE, PUBLISH, START, SUBMIT
from holdfast.records import partition_for, partition_of
from holdfast.records.keys import NO_KEY

OperationValue = NewJob | NewInstance | Message | Completion


class Planned(NamedTuple):
    """An operation as the engine has it; its partition is 0 if it may be done anywhere."""

    kind: tuple[int, int]  # of its command: value type and intent
    partition: int
    key: int
    value: OperationValue


def planned(value: OperationValue, partitions: int, key: int = NO_KEY) -> Planned:
    """An operation, and where it has to be done."""
    if isinstance(value, Completion):
        return Planned(COMPLETE, partition_of(key), key, value)
    if isinstance(value, Message):
        partition = partition_for(value.correlation, partitions)
        return Planned(PUBLISH, partition, NO_KEY, value)
    named = value.idempotency_key
    partition = partition_for(named, partitions) if named else 0
    if isinstance(value, NewJob):
        return Planned(SUBMIT, partition, NO_KEY, value)
    return Planned(START, partition, NO_KEY, value)


def home_of(operations: Sequence[Planned], anywhere: int) -> int:
    """The partition that decides: the one with most operations, of those where jobs are completed.

    Jobs of processes can be completed at the home only. What may be done anywhere is done at the
    home: where the rest is there, too, one append does it all. The same operations have the same
    home whenever they are sent.
    """
    jobs = {each.partition for each in operations if isinstance(each.value, Completion)}
    counts = Counter(each.partition for each in operations if each.partition)
    return max(sorted(jobs or counts), key=counts.__getitem__, default=anywhere)
