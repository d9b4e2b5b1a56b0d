"""What can be asked of the messages of a partition."""

import msgspec

from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader


class FoundReceivers(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who a message would be given to now."""

    subscriptions: list[int]  # of each process the one that waits longest
    can_start: bool  # it would start an instance


class FindReceivers(Query[FoundReceivers], frozen=True):
    """Who waits for a message, on the partition of its correlation key."""

    name: str
    correlation: str


def find_receivers(reader: Reader, query: FindReceivers) -> FoundReceivers:
    state = reader.state
    waiting = state.messages.next_of_each(query.name, query.correlation)
    starts = state.processes.start_messages.get(query.name) or ()
    can_start = any(
        not query.correlation
        or state.messages.locked_by(start.process_id, query.correlation) is None
        for start in starts
    )
    return FoundReceivers([key for key, _ in waiting], can_start)


QUERIES = questions(find_receivers)
