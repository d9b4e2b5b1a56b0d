"""The messages of a partition, and the subscriptions whose keys belong to it."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.messages.free import FreeSubscriptions
from holdfast.engine.messages.values import NewMessage, NewSubscription, id_of
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import TEXT, TEXT_U32_U64, U64, U64_TEXT


class StoredMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message that is kept until its time is over."""

    message: NewMessage
    deadline_ms: int


class OpenSubscription(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A subscription, and the message that it was offered and has not answered."""

    subscription: NewSubscription
    offered: int = 0


class Messages:
    """Everything a partition knows about messages."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.messages = state.family(Tag.MESSAGES, U64, StoredMessage)
        self._names = state.family(Tag.MESSAGE_NAMES, TEXT_U32_U64, bytes)
        self._ids = state.family(Tag.MESSAGE_IDS, TEXT, int)
        self._taken = state.family(Tag.MESSAGE_TAKEN, U64_TEXT, bytes)  # (message, process id)
        self.subscriptions = state.family(Tag.OPEN_SUBSCRIPTIONS, U64, OpenSubscription)
        self._free = FreeSubscriptions(state)
        # Subscriptions of a folder that knew no free ones. It gets no new rows.
        self._waiting = state.family(Tag.SUBSCRIPTION_NAMES, TEXT_U32_U64, bytes)
        self._locks = state.family(Tag.START_LOCKS, TEXT, int)  # process id and key -> instance

    # --- what can be asked --------------------------------------------------------------------

    def kept(self, name: str, correlation: str) -> Iterator[int]:
        """The messages with a name and a key, oldest first."""
        for row, _ in self._names.scan((_both(name, correlation),)):
            yield row[2]

    def next_of_each(self, name: str, correlation: str) -> list[tuple[int, str]]:
        """Who would be given a message now: a subscription and its process, oldest first."""
        found = self._free.first_of_each(name, correlation)
        for row, _ in self._waiting.scan((_both(name, correlation),)):
            old = self.subscriptions.get(row[2])
            assert old is not None
            if not old.offered:
                process_id = old.subscription.process_id
                found[process_id] = min(found.get(process_id, row[2]), row[2])
        return sorted((key, process_id) for process_id, key in found.items())

    def by_id(self, new: NewMessage) -> int | None:
        """The kept message with the same name, key and id."""
        return self._ids.get(id_of(new)) if new.message_id else None

    def is_taken(self, message: int, process_id: str) -> bool:
        """Whether an instance of the process has had the message."""
        return self._taken.get((message, process_id)) is not None

    def locked_by(self, process_id: str, correlation: str) -> int | None:
        """The instance that a message with this key has started and that has not ended."""
        return self._locks.get(_both(process_id, correlation))

    # --- what appliers change -----------------------------------------------------------------

    def keep(self, key: int, message: NewMessage, deadline_ms: int) -> None:
        self.messages.insert(key, StoredMessage(message, deadline_ms))
        self._names.insert((_both(message.name, message.correlation), 0, key), EMPTY)
        self._due.add(deadline_ms, DueKind.MESSAGE, key)
        if message.message_id:
            self._ids.put(id_of(message), key)

    def expire(self, key: int) -> None:
        stored = self.messages.get(key)
        if stored is None:
            return
        message = stored.message
        self.messages.delete(key)
        self._names.delete((_both(message.name, message.correlation), 0, key))
        self._due.remove(stored.deadline_ms, DueKind.MESSAGE, key)
        if message.message_id:
            self._ids.delete(id_of(message))
        for row in [row for row, _ in self._taken.scan((key,))]:
            self._taken.delete(row)

    def take(self, message: int, process_id: str) -> None:
        """An instance of the process has the message; remembered for as long as it is kept."""
        if self.messages.get(message) is not None:
            self._taken.put((message, process_id), EMPTY)

    def give_back(self, message: int, process_id: str) -> None:
        self._taken.delete((message, process_id))

    def open(self, key: int, new: NewSubscription) -> None:
        self.subscriptions.insert(key, OpenSubscription(new))
        self._free.add(key, new)

    def migrate(self, key: int, new: NewSubscription) -> None:
        """The subscription counts for another process; nothing happens if it is closed."""
        row = self.subscriptions.get(key)
        if row is None:
            return
        self.subscriptions.put(key, OpenSubscription(new, row.offered))
        if not row.offered and not self._is_old(key, row):
            self._free.remove(key, row.subscription)
            self._free.add(key, new)

    def close(self, key: int) -> None:
        row = self.subscriptions.get(key)
        if row is not None:
            is_old = self._is_old(key, row)
            self.subscriptions.delete(key)
            if is_old:
                self._waiting.delete(_old_row(key, row))
            elif not row.offered:
                self._free.remove(key, row.subscription)

    def offer(self, key: int, message: int) -> None:
        """The subscription was given a message; 0: it waits for the next."""
        row = self.subscriptions.get(key)
        if row is None:
            return
        self.subscriptions.put(key, OpenSubscription(row.subscription, message))
        if bool(row.offered) == bool(message) or self._is_old(key, row):
            return
        if message:
            self._free.remove(key, row.subscription)
        else:
            self._free.add(key, row.subscription)

    def _is_old(self, key: int, row: OpenSubscription) -> bool:
        return self._waiting.get(_old_row(key, row)) is not None

    def lock(self, process_id: str, correlation: str, instance: int) -> None:
        self._locks.put(_both(process_id, correlation), instance)

    def unlock(self, process_id: str, correlation: str) -> None:
        self._locks.delete(_both(process_id, correlation))


def _both(first: str, second: str) -> str:
    return f"{first}\x01{second}"


def _old_row(key: int, row: OpenSubscription) -> tuple[str, int, int]:
    return _both(row.subscription.name, row.subscription.correlation), 0, key
