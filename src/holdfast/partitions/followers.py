"""Who is told of the effects of partitions."""

from collections.abc import Callable, Container
from functools import partial
from typing import Any

from holdfast.logs import log
from holdfast.partitions.api import ANYWHERE, EffectTopic, Tell

_About = int | str | None


class Followers:
    """Tells effects to the followers of their topic."""

    def __init__(self) -> None:
        # by the type of the effect and by what it is about: telling costs nothing for others'
        self._by_type: dict[type[Any], dict[_About, dict[int, tuple[int, Tell]]]] = {}
        self._last = 0

    @property
    def heard(self) -> Container[type[Any]]:
        """The types of effects that somebody follows now."""
        return self._by_type

    def follow(self, topic: EffectTopic, tell: Tell) -> Callable[[], None]:
        """Has effects told from now on; what is returned ends it."""
        self._last += 1
        by_about = self._by_type.setdefault(topic.effect, {})
        by_about.setdefault(topic.about, {})[self._last] = topic.partition, tell
        return partial(self._stop, topic, self._last)

    def _stop(self, topic: EffectTopic, number: int) -> None:
        by_about = self._by_type.get(topic.effect, {})
        told = by_about.get(topic.about, {})
        told.pop(number, None)
        if not told:
            by_about.pop(topic.about, None)
        if not by_about:
            self._by_type.pop(topic.effect, None)

    def tell(self, effect: Any) -> None:
        """Something happened."""
        by_about = self._by_type.get(type(effect))
        if not by_about:
            return
        for about in (effect.about, None):
            for partition, tell in list(by_about.get(about, {}).values()):
                if partition in (ANYWHERE, effect.partition):
                    _tell(tell, effect)

    def missed_all(self) -> None:
        """Anything may not have been told."""
        for by_about in list(self._by_type.values()):
            for told in list(by_about.values()):
                for _, tell in list(told.values()):
                    _tell(tell, None)

    def missed_topic(self, topic: EffectTopic) -> None:
        """Something of one topic may not have been told."""
        told = self._by_type.get(topic.effect, {}).get(topic.about, {})
        for where, tell in list(told.values()):
            if where == topic.partition:
                _tell(tell, None)

    def missed(self, partition: int) -> None:
        """What happened on a partition lately may not have been told."""
        for by_about in list(self._by_type.values()):
            for told in list(by_about.values()):
                for where, tell in list(told.values()):
                    if where in (ANYWHERE, partition):
                        _tell(tell, None)


def _tell(tell: Tell, effect: Any) -> None:
    """One that cannot take an effect keeps no other from it."""
    try:
        tell(effect)
    except Exception as error:
        log.error("effect not taken", effect=type(effect).__name__, error=repr(error))
