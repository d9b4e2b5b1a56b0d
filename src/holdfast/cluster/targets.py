"""Whom a partition may be handed to when an operator asks for it."""

from holdfast.cluster.placing import Sight
from holdfast.errors import InvalidState, NotFound
from holdfast.sequence.api import Chain, Replica


def check_target(partition: int, to: str, chain: Chain, sight: Sight) -> None:
    """NotFound or InvalidState, unless a member runs, takes partitions and keeps this one's log."""
    member = sight.members.get(to)
    if member is None or not member.is_there:
        raise NotFound(f"Member {to!r} is not running", member=to)
    if member.is_draining:
        raise InvalidState(
            f"Member {to!r} is being drained and gets no partitions; undo that first: holdfast"
            f" cluster drain {to} --undo",
            member=to,
            partition=partition,
        )
    if chain.last is None or Replica(to, member.disk or "") not in chain.last.replicas:
        raise InvalidState(
            f"Member {to!r} does not keep the log of partition {partition}; holdfast cluster"
            " status shows the members that do",
            member=to,
            partition=partition,
        )
