"""Who follows what, on members that come and go and partitions that move."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol

from holdfast.errors import Unavailable
from holdfast.partitions.api import ANYWHERE, EffectTopic, Tell

Stop = Callable[[], None]


class Followable(Protocol):
    """Where topics are followed: this member's partitions, or another's."""

    def follow(self, topic: EffectTopic, tell: Tell) -> Stop: ...


class _Followed:
    """A topic of one partition, wherever that is."""

    __slots__ = ("stop", "tell", "topic")

    def __init__(self, topic: EffectTopic, tell: Tell) -> None:
        self.topic = topic
        self.tell = tell
        self.stop: Stop = _nothing


class _Everywhere:
    """A topic of all partitions, with how to stop each member's telling of it."""

    __slots__ = ("stops", "tell", "topic")

    def __init__(self, topic: EffectTopic, tell: Tell, stops: dict[str, Stop]) -> None:
        self.topic = topic
        self.tell = tell
        self.stops = stops


class Following:
    """All topics that are followed here. Each is followed where its partition is at the moment."""

    def __init__(self, owner: Callable[[int], Followable]) -> None:
        """`owner` gives where a partition is; Unavailable while that is not known."""
        self._owner = owner
        self._followed: dict[int, _Followed] = {}
        self._everywhere: dict[int, _Everywhere] = {}
        self._last = 0

    def follow(
        self, topic: EffectTopic, tell: Tell, members: Mapping[str, Followable], *, may_wait: bool
    ) -> Stop:
        """Has effects told from now on; what is returned ends it."""
        self._last += 1
        number = self._last
        if topic.partition == ANYWHERE:
            stops = {name: each.follow(topic, tell) for name, each in members.items()}
            self._everywhere[number] = _Everywhere(topic, tell, stops)
            return partial(self._unfollow, number)
        followed = _Followed(topic, tell)
        try:
            followed.stop = self._owner(topic.partition).follow(topic, tell)
        except Unavailable:
            if not may_wait:
                raise
        self._followed[number] = followed
        return partial(self._unfollow, number)

    def _unfollow(self, number: int) -> None:
        followed = self._followed.pop(number, None)
        if followed is not None:
            followed.stop()
        everywhere = self._everywhere.pop(number, None)
        if everywhere is not None:
            for stop in everywhere.stops.values():
                stop()

    def add(self, member: str, at: Followable) -> None:
        """A member joined: what is followed everywhere is followed there, too."""
        for each in self._everywhere.values():
            each.stops[member] = at.follow(each.topic, each.tell)

    def remove(self, member: str) -> None:
        for each in self._everywhere.values():
            each.stops.pop(member, _nothing)()

    def moved(self, partition: int) -> None:
        """A partition has another owner: its followers follow it there, and ask again."""
        for followed in list(self._followed.values()):
            if followed.topic.partition == partition:
                followed.stop()
                followed.stop = _nothing
                with suppress(Unavailable):  # a caller that asks now is told so
                    followed.stop = self._owner(partition).follow(followed.topic, followed.tell)
                followed.tell(None)


def _nothing() -> None:
    pass
