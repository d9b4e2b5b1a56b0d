"""What is done for a command with a request id, and the command that forgets old answers."""

from typing import Any

import msgspec

from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.kernel.turn import Command, Reply, Turn
from holdfast.engine.requests.values import Accepted, Answered, PurgeRequests, RequestIntent
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import PURGE_ROWS_MAX, REQUEST_REPLY_BYTES_MAX, REQUESTS_KEPT_MAX
from holdfast.records import Record, Rejection, ValueType
from holdfast.records.keys import NO_KEY

_REQUEST = ValueType.REQUEST
_encode = msgspec.msgpack.Encoder().encode


class Remembering:
    """Answers a request that was answered before as it was answered then."""

    def known(
        self, state: EngineState, tables: Dispatch, id_: str, command: Command
    ) -> Reply | None:
        """The reply to a request that is known here; None: it is new."""
        answer = state.requests.answers.get(id_)
        if answer is not None:
            if (answer.value_type, answer.intent) != (command.value_type, command.intent):
                reason = f"Expected a new request id, but {id_!r} was used for another command"
                return Reply(rejection=Rejection(Code.INVALID_ARGUMENT, reason))
            return _reply(tables, answer)
        if state.requests.open_at(id_) is not None:
            reason = f"Request {id_!r} is being processed; try again"
            return Reply(rejection=Rejection(Code.UNAVAILABLE, reason))
        return None

    def waiting(self, state: EngineState, position: int) -> str | None:
        """The id of the request whose command stands at a position of the log and waited."""
        return state.requests.waiting(position)

    def accept(self, turn: Turn[EngineState], id_: str, position: int) -> None:
        """The command is on the log, and waits for others."""
        turn.event(_REQUEST, RequestIntent.ACCEPTED, NO_KEY, Accepted(id_, position))

    def answer(self, turn: Turn[EngineState], id_: str, command: Record, reply: Reply) -> None:
        """The command is processed: its reply is kept with what it did."""
        value = b"" if reply.value is None else _encode(reply.value)
        size_bytes = len(value)
        if size_bytes > REQUEST_REPLY_BYTES_MAX:
            value = b""
        requests = turn.state.requests
        position = requests.open_at(id_)
        answered = Answered(
            id_, command.value_type, command.intent, reply.key, value, reply.rejection,
            0 if value else size_bytes, -1 if position is None else position,
        )  # fmt: skip
        turn.event(_REQUEST, RequestIntent.ANSWERED, NO_KEY, answered)
        # All that is too much at once goes in one go: looking costs more than forgetting.
        if len(requests.line()) >= REQUESTS_KEPT_MAX + PURGE_ROWS_MAX:
            turn.command(_REQUEST, RequestIntent.PURGE, NO_KEY, PurgeRequests())


def _reply(tables: Dispatch, answer: Answered) -> Reply:
    if answer.value_bytes:
        reason = (
            f"Request {answer.id!r} was done before; its answer of {answer.value_bytes} bytes was"
            " too large to be kept"
        )
        return Reply(answer.key, None, Rejection(Code.ALREADY_EXISTS, reason))
    value: Any = None
    if answer.value:
        kind = tables.answers[answer.value_type, answer.intent]
        value = msgspec.msgpack.decode(answer.value, type=kind)
    return Reply(answer.key, value, answer.rejection)


def purge(turn: Turn[EngineState], command: Record) -> None:
    """Forgets answers whose time is over, a bounded number at a time."""
    before = turn.state.requests.outdated(turn.now_ms, REQUESTS_KEPT_MAX, PURGE_ROWS_MAX)
    turn.event(_REQUEST, RequestIntent.PURGED, command.key, PurgeRequests(before))
