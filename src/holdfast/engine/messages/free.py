"""Subscriptions that wait for a message: the next one of each process is found at once.

However many wait for one name and key, a message costs what it is given to. The rows are in the
order of name and key, process, subscription. A row that was used leaves a grave until the store is
written, so it is remembered where the first row of each process was last.
"""

from holdfast.engine.families import Tag
from holdfast.engine.messages.values import NewSubscription
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import TEXT_U32_U64

_REMEMBERED_MAX = 10_000  # names and keys: a few MB
_U32_MAX, _U64_MAX = 2**32 - 1, 2**64 - 1


class FreeSubscriptions:
    """The subscriptions of a partition that were not offered a message."""

    def __init__(self, state: PartitionState) -> None:
        self._rows = state.family(Tag.FREE_SUBSCRIPTIONS, TEXT_U32_U64, bytes)
        # (name and key) -> process -> nothing of it is before this subscription
        self._firsts: dict[str, dict[str, int]] = {}
        state.when_undone(self._firsts.clear)

    def add(self, key: int, of: NewSubscription) -> None:
        place = _place(of.name, of.correlation)
        self._rows.put((place + of.process_id, 0, key), EMPTY)
        firsts = self._firsts.get(place)
        if firsts is not None:
            firsts[of.process_id] = min(firsts.get(of.process_id, key), key)

    def remove(self, key: int, of: NewSubscription) -> None:
        self._rows.delete((_place(of.name, of.correlation) + of.process_id, 0, key))

    def first_of_each(self, name: str, correlation: str) -> dict[str, int]:
        """The oldest subscription of each process that waits for a name and a key."""
        place = _place(name, correlation)
        firsts = self._firsts.get(place)
        if firsts is None:
            found = self._look(place)
        else:
            looked = {each: self._first(place + each, at) for each, at in firsts.items()}
            found = {each: key for each, key in looked.items() if key is not None}
        if len(self._firsts) >= _REMEMBERED_MAX:
            self._firsts.clear()
        self._firsts[place] = found
        return dict(found)

    def _first(self, text: str, at: int) -> int | None:
        keys = self._rows.first_keys((text,), (text, 0, at), 1)
        return keys[0][2] if keys else None

    def _look(self, place: str) -> dict[str, int]:
        """From process to process, without looking at the rows between."""
        found: dict[str, int] = {}
        start = place, 0, 0
        while keys := self._rows.first_keys((), start, 1):
            text, _, key = keys[0]
            if not text.startswith(place):
                break
            found[text[len(place) :]] = key
            start = text, _U32_MAX, _U64_MAX
        return found


def _place(name: str, correlation: str) -> str:
    """What the rows of a name and a key begin with, and no others: the lengths tell them apart."""
    return f"{len(name)}:{len(correlation)}:{name}{correlation}\x01"
