"""How a domain tells the kernel what it does: two tables, one for commands and one for events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from holdfast.records import Codec, Record, Rejection, Schema, ValueType

if TYPE_CHECKING:
    from holdfast.engine.kernel.turn import Command, Reply, Turn

CommandHandler = Callable[["Turn[Any]", Record], None]
"""Reads the state, writes events, follow-up commands, a rejection, an answer, effects."""

Applier = Callable[[Any, Record], None]
"""Changes the state for one event; the only code that does, so replay is nothing but applying."""


class Distributed(msgspec.Struct, frozen=True):
    """What is done for a command that is distributed to other partitions: two functions.

    A partition never has to find out whether it is the first to see a command, and what is done
    for a command that came from another partition cannot distribute it again.
    """

    on_new: CommandHandler  # where it is first asked for: decides, and distributes
    on_distributed: CommandHandler  # on the others: does the same without deciding anew
    # where it is first asked for: a person gave it up for a partition, which will never have it
    on_given_up: "GivenUp | None" = None


GivenUp = Callable[["Turn[Any]", int, tuple[int, ...]], None]
"""Called with the key of the distributed command and the partitions."""


class Required(NamedTuple):
    """What one must be permitted: any one of the permissions, with every one of the resources."""

    resource_type: str
    permissions: tuple[str, ...]
    ids: tuple[str, ...]


Need = Callable[[Any, Record], tuple[Required, ...]]
"""The permissions that the asker of a command needs, all of them, by the state as it is."""

Guard = Callable[[Any, Record, Need | None], Rejection | None]
"""Decides whether a command with claims may be done; None: it may."""

Distributing = Callable[[Distributed], CommandHandler]
"""Makes one handler of the two: who calls which, and what is sent back."""


Due = tuple[int, int, int]
"""A due date: when, what kind, which key."""


class DueCommand(NamedTuple):
    """A command that time itself gives."""

    value_type: ValueType
    intent: IntEnum
    key: int
    value: Any
    rows: tuple[Any, ...] = ()  # the due dates it stands for, as its source knows them


class WhenDue(msgspec.Struct, frozen=True):
    """What a domain does when something of a kind is due: one of its commands."""

    intent: IntEnum
    value: Callable[[Sequence[Due]], Any]  # of the command: for one due date, or for many
    names_key: bool = True  # the command has the key of the due date
    together: bool = False  # all that are due at the same time share one command
    # a span to hold out rather than a date: a clock that jumps does not cut it short
    is_span: bool = False


class Domain(msgspec.Struct, frozen=True):
    """One subject of records: its intents, the struct of each, its commands and its appliers."""

    value_type: ValueType
    intents: type[IntEnum]
    values: Mapping[Any, type[msgspec.Struct]]  # intent -> struct of the value
    commands: Mapping[Any, CommandHandler | Distributed]  # intent -> what it does
    appliers: Mapping[Any, Applier]  # intent -> what it changes
    # the last key inside the value of an event, where an event gives out more keys than its own
    last_key: Callable[[Any], int] | None = None
    # intent -> what one must be permitted; a command that is not named here never comes from people
    needs: Mapping[Any, Need] = {}
    # intent -> what the value of a reply is, where the key is not all that is answered
    answers: Mapping[Any, Any] = {}
    followed: tuple[type[Any], ...] = ()  # effects that the followers of a topic are told of
    due: Mapping[int, WhenDue] = {}  # kind of due date -> what is done then
    # a struct of `values` -> one with more fields that may stand in its place
    variants: Mapping[type[msgspec.Struct], type[msgspec.Struct]] = {}


class RequestAnswers(Protocol):
    """Keeps the replies to commands that have a request id, as part of the state."""

    def known(self, state: Any, tables: "Dispatch", id_: str, command: "Command") -> "Reply | None":
        """The reply to a request that is known; None: it is new."""
        ...

    def waiting(self, state: Any, position: int) -> str | None:
        """The id of the request whose command waited on the log at a position."""
        ...

    def accept(self, turn: "Turn[Any]", id_: str, position: int) -> None:
        """The command of a request is on the log, and waits for others."""
        ...

    def answer(self, turn: "Turn[Any]", id_: str, command: Record, reply: "Reply") -> None:
        """The command of a request is processed."""
        ...


class Dispatch:
    """The domains' tables put together and checked."""

    def __init__(
        self,
        domains: Iterable[Domain],
        distributing: Distributing | None = None,
        guard: Guard | None = None,
        requests: "RequestAnswers | None" = None,
    ) -> None:
        self._guard = guard
        self.requests = requests
        self._needs: dict[tuple[int, int], Need] = {}
        self.distributed: dict[tuple[int, int], Distributed] = {}
        self.handlers: dict[tuple[int, int], CommandHandler] = {}
        self.appliers: dict[tuple[int, int], Applier] = {}
        self._intents: dict[int, type[IntEnum]] = {}
        self.last_keys: dict[int, Callable[[Any], int]] = {}
        self.answers: dict[tuple[int, int], Any] = {}
        self.followed: dict[str, type[Any]] = {}
        self.due: dict[int, tuple[ValueType, WhenDue]] = {}
        values: dict[tuple[int, int], type[msgspec.Struct]] = {}
        variants: dict[type[msgspec.Struct], type[msgspec.Struct]] = {}
        for domain in domains:
            known = set(domain.commands) | set(domain.appliers)
            assert known == set(domain.intents), f"{domain.value_type.name}: an intent is unhandled"
            assert known == set(domain.values), f"{domain.value_type.name}: an intent has no struct"
            assert not set(domain.commands) & set(domain.appliers)
            tag = int(domain.value_type)
            for intent, handler in domain.commands.items():
                if isinstance(handler, Distributed):
                    assert distributing is not None, "who distributes?"
                    self.distributed[tag, int(intent)] = handler
                    handler = distributing(handler)
                self.handlers[tag, int(intent)] = handler
            assert set(domain.needs) <= set(domain.commands), "only commands need a permission"
            self._needs.update({(tag, int(i)): need for i, need in domain.needs.items()})
            self._intents[tag] = domain.intents
            self.answers.update({(tag, int(i)): kind for i, kind in domain.answers.items()})
            self.followed.update({each.__name__: each for each in domain.followed})
            for kind, each in domain.due.items():
                assert kind not in self.due, f"two domains have due dates of kind {kind}"
                assert each.intent in domain.commands, f"{each.intent!r} is no command"
                self.due[int(kind)] = (domain.value_type, each)
            self.appliers.update({(tag, int(i)): f for i, f in domain.appliers.items()})
            if domain.last_key is not None:
                self.last_keys[tag] = domain.last_key
            values.update({(tag, int(i)): kind for i, kind in domain.values.items()})
            variants.update(domain.variants)
        self.values, self.variants = values, variants
        self.codec = Codec(Schema(values, variants))
        self._decoders = {
            each: msgspec.msgpack.Decoder(kind | variants.get(kind, kind)).decode
            for each, kind in values.items()
        }

    def refusal(self, state: Any, command: Record) -> Rejection | None:
        """Why the asker of a command may not have it done; None if it is permitted.

        What another partition distributed, or what led to a follow-up, was decided before.
        """
        if command.delivery is not None or command.source_position >= 0 or self._guard is None:
            return None
        return self._guard(state, command, self._needs.get((command.value_type, command.intent)))

    def intent(self, value_type: int, intent: int) -> IntEnum:
        """An intent by its number."""
        return self._intents[value_type](intent)

    def decode_value(self, value_type: int, intent: int, encoded: bytes) -> Any:
        """A value that travels or is kept by itself: as well checked as in a record."""
        return self._decoders[value_type, intent](encoded)
