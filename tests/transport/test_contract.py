"""The promise of the port between members, checked on every way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.transport.ways import (
    CLUSTER,
    COMPUTE,
    ECHO,
    FAIL,
    HASTY,
    HOLD,
    LATER,
    NOTE,
    QUICK,
    WAYS,
    Raw,
    Script,
    Way,
    framed,
    until,
)

from holdfast.errors import (
    Forbidden,
    HoldfastError,
    Internal,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.limits import KIB, MESSAGE_BYTES_MAX, MIB
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import ConnectionBounds, Identity
from holdfast.transport.messages import ANSWER, encode_messages, hello_of
from holdfast.transport.sockets import _Endpoint

SMALL = ConnectionBounds(
    message_bytes_max=64 * KIB, frame_bytes=16 * KIB, held_bytes_max=256 * KIB,
    tick_ms=10_000,
)  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    return Way(request.param, tmp_path)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What was logged: the event and its fields."""
    seen: list[tuple[str, dict[str, Any]]] = []

    class Log:
        def __getattr__(self, level: str) -> Any:
            return lambda event, **fields: seen.append((event, fields))

    for module in ("session", "exchange"):
        monkeypatch.setattr(f"holdfast.transport.{module}.log", Log())
    return seen


def stop_reading(connection: Any) -> None:
    """The member at this end of the connection takes nothing any more."""
    wire = connection._wire
    if isinstance(wire, _Endpoint):
        assert wire._transport is not None
        wire._transport.pause_reading()
    else:
        wire._host.stall()


# --- order and batches ------------------------------------------------------------------------


def test_calls_and_tells_arrive_in_the_order_in_which_they_were_sent(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            calls = []
            for number in range(300):
                body = str(number).encode()
                if number % 3:
                    calls.append(connection.call(ECHO, body))
                else:
                    connection.tell(NOTE, body)
                if number % 50 == 0:
                    await asyncio.sleep(0)
            answers = await asyncio.gather(*calls)
            assert answers == [str(number).encode() for number in range(300) if number % 3]
            assert [int(body) for _, body in theirs.heard] == list(range(300))

    way.play(story)


def test_answers_come_when_they_are_ready_whatever_was_asked_first(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, _):
            done: list[bytes] = []
            calls = [connection.call(LATER, str(ms).encode()) for ms in (60, 1, 30)]
            for call in calls:
                call.add_done_callback(lambda call: done.append(call.result()))
            await asyncio.gather(*calls)
            assert done == [b"1", b"30", b"60"]

    way.play(story)


def test_both_sides_call_over_one_connection(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, ours, theirs):
            assert theirs.connection is not None
            assert (connection.peer, theirs.connection.peer) == ("b", "a")
            there, back = connection.call(ECHO, b"there"), theirs.connection.call(ECHO, b"back")
            assert await asyncio.gather(there, back) == [b"there", b"back"]
            assert ours.heard == [(ECHO, b"back")]

    way.play(story)


def test_messages_of_one_turn_travel_in_one_frame_both_ways(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            assert theirs.connection is not None
            sent, received = connection.traffic.frames_sent, connection.traffic.frames_received
            await asyncio.gather(*(connection.call(ECHO, b"x" * 154) for _ in range(64)))
            assert connection.traffic.frames_sent == sent + 1
            assert connection.traffic.frames_received == received + 1
            assert theirs.connection.traffic.bytes_received < 64 * 200

    way.play(story)


def test_what_is_told_at_once_leaves_before_the_turn_ends_behind_what_waited(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            before = connection.traffic.frames_sent
            connection.tell(NOTE, b"waits")
            assert connection.traffic.frames_sent == before
            connection.tell(NOTE, b"at once", at_once=True)
            assert connection.traffic.frames_sent == before + 1, "it is written when tell returns"
            connection.tell(NOTE, b"waits again")
            await until(lambda: len(theirs.heard) == 3)
            assert [body for _, body in theirs.heard] == [b"waits", b"at once", b"waits again"]
            assert connection.traffic.frames_sent == before + 2

    way.play(story)


# --- errors -----------------------------------------------------------------------------------


def test_an_error_travels_with_its_code_message_and_fields(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            theirs.error = NotFound("There is no task", key=7, path=Path("/x"))
            with pytest.raises(NotFound) as told:
                await connection.call(FAIL, b"")
            assert told.value.message == "There is no task"
            assert told.value.fields == {"key": 7, "path": "/x"}
            theirs.error = ResourceExhausted("full", retry_after_ms=70)
            with pytest.raises(ResourceExhausted) as full:
                await connection.call(FAIL, b"")
            assert full.value.retry_after_ms == 70

    way.play(story)


def test_a_bug_is_logged_where_it_is_and_told_only_as_such(way: Way, logged: Any) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            with pytest.raises(Internal) as told:
                await connection.call(FAIL, b"")
            assert "secret" not in told.value.message
            connection.tell(FAIL, b"")
            assert await connection.call(ECHO, b"still there") == b"still there"
            assert [fields["exc_info"] for _, fields in logged] == [theirs.error] * 2

    way.play(story)


def test_a_call_that_nobody_waits_for_any_more_disturbs_nothing(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            call = connection.call(HOLD, b"")
            await until(lambda: theirs.held)
            call.cancel()
            theirs.held[0].set_result(b"late")
            assert await connection.call(ECHO, b"x") == b"x"

    way.play(story)


def test_an_answer_is_encoded_where_it_is_made_and_taken_where_it_arrives(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            seen: list[object] = []

            def take(future: Any, answer: Any) -> None:
                seen.append(answer)
                if isinstance(answer, bytes):
                    future.set_result(int(answer))
                else:
                    future.set_exception(KeyError("taken"))

            call = connection.call(COMPUTE, b"20", take)
            assert await call == 40
            theirs.error = NotFound("nothing")
            with pytest.raises(KeyError, match="taken"):
                await connection.call(FAIL, b"", take)
            with pytest.raises(Internal):  # what cannot be encoded is a bug there
                await connection.call(COMPUTE, b"-1")
            with pytest.raises(ValueError, match="invalid literal"):  # not taken: one here
                await connection.call(ECHO, b"x", take)
            assert [type(each) for each in seen] == [bytes, NotFound, bytes]

    way.play(story)


# --- sizes and back-pressure ------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 64 * KIB - 1, 256 * KIB, 3 * MIB])
def test_a_message_of_any_size_arrives_unchanged(way: Way, size: int) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            body = bytes(range(256)) * (size // 256 + 1)
            calls = [connection.call(ECHO, body[:size]), connection.call(ECHO, b"behind")]
            assert await asyncio.gather(*calls) == [body[:size], b"behind"]
            assert [len(body) for _, body in theirs.heard] == [size, 6]

    way.play(story)


def test_the_largest_message_is_taken_and_one_byte_more_is_refused_by_name(way: Way) -> None:
    bounds = (
        ConnectionBounds() if way.name == "unix" else SMALL
    )  # the true limit once: it is 65 MiB

    async def story() -> None:
        async with way.pair(bounds=bounds) as (connection, _, theirs):
            largest = bytes(bounds.message_bytes_max)
            assert len(await connection.call(ECHO, largest)) == len(largest)
            with pytest.raises(InvalidArgument, match="MESSAGE_BYTES_MAX") as refused:
                await connection.call(ECHO, largest + b"x")
            assert refused.value.fields["limit"] == "MESSAGE_BYTES_MAX"
            with pytest.raises(InvalidArgument, match="MESSAGE_BYTES_MAX"):
                connection.tell(NOTE, largest + b"x")
            call = connection.call(HOLD, b"")
            await until(lambda: theirs.held)
            theirs.held[0].set_result(largest + b"x")
            with pytest.raises(InvalidArgument, match="MESSAGE_BYTES_MAX"):
                await call
            assert await connection.call(ECHO, b"on") == b"on"

    assert ConnectionBounds().message_bytes_max == MESSAGE_BYTES_MAX
    way.play(story)


def test_a_peer_that_does_not_read_gets_no_more_than_the_bound(way: Way) -> None:
    async def story() -> None:
        async with way.pair(bounds=SMALL) as (connection, _, theirs):
            stop_reading(theirs.connection)
            body = bytes(16 * KIB)
            refused: ResourceExhausted | None = None
            for _ in range(2_000):  # 32 MB: the kernel takes some of them
                try:
                    connection.tell(NOTE, body)
                except ResourceExhausted as error:
                    refused = error
                    break
                await asyncio.sleep(0)
            assert refused is not None
            assert refused.retry_after_ms > 0
            assert refused.fields["limit"] == "MEMBER_BYTES_MAX"
            held = connection.held_bytes  # pyright: ignore[reportAttributeAccessIssue]
            assert held <= SMALL.held_bytes_max + SMALL.message_bytes_max
            with pytest.raises(ResourceExhausted):
                await connection.call(ECHO, body)

    way.play(story)


def test_calls_without_an_answer_count_until_they_have_it(way: Way) -> None:
    async def story() -> None:
        async with way.pair(bounds=SMALL) as (connection, _, theirs):
            held = [connection.call(HOLD, bytes(32 * KIB)) for _ in range(8)]
            with pytest.raises(ResourceExhausted):
                await connection.call(ECHO, b"one more")
            await until(lambda: len(theirs.held) == 8)
            waiting = asyncio.ensure_future(connection.room())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            for each in theirs.held:
                each.set_result(b"")
            await asyncio.gather(*held)
            await waiting
            assert await connection.call(ECHO, b"one more") == b"one more"

    way.play(story)


def test_one_that_does_not_read_its_answers_is_served_no_more(way: Way) -> None:
    """Answers larger than calls are not made without bound for somebody who does not take them."""

    async def story() -> None:
        async with way.pair(bounds=SMALL) as (connection, _, theirs):
            stop_reading(connection)
            for _ in range(400):  # 25 MB of answers
                theirs.held.clear()
                connection.call(HOLD, b"").add_done_callback(lambda call: call.exception())
                await asyncio.sleep(0.02 if way.name == "simulated" else 0.0005)
                for each in theirs.held:
                    each.set_result(bytes(64 * KIB))
            assert theirs.connection is not None
            held = theirs.connection.held_bytes  # pyright: ignore[reportAttributeAccessIssue]
            assert held <= SMALL.held_bytes_max + 4 * SMALL.message_bytes_max
            assert len(theirs.heard) < 400

    way.play(story)


# --- signs of life ----------------------------------------------------------------------------


def test_an_idle_connection_stays(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, _):
            await asyncio.sleep(3 * QUICK.silent_ms_max / 1_000)
            assert await connection.call(ECHO, b"still there") == b"still there"

    way.play(story)


def test_a_slow_answer_is_not_a_stall(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, _):
            assert await connection.call(LATER, b"400") == b"400"

    way.play(story)


def test_a_peer_that_stalls_is_noticed_and_its_calls_fail(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            loop = asyncio.get_running_loop()
            call = connection.call(HOLD, b"")
            await until(lambda: theirs.held)
            stop_reading(theirs.connection)
            begun = loop.time()
            with pytest.raises(Unknown):
                async with asyncio.timeout(5):
                    await call
            assert loop.time() - begun < 10 * QUICK.silent_ms_max / 1_000
            assert connection.closed
            with pytest.raises(Unavailable):
                await connection.call(ECHO, b"")

    way.play(story)


def test_a_half_open_connection_is_noticed_without_a_call(way: Way, logged: Any) -> None:
    """The peer greeted, and was never heard again: as if its machine had lost power."""

    async def story() -> None:
        async with way.raw() as (peer, script, listener):
            await peer.greet()
            await until(lambda: script.connection)
            reasons: list[str] = []
            assert script.connection is not None
            script.connection.on_closed(reasons.append)
            await until(lambda: reasons)
            assert "nothing was heard" in reasons[0]
            assert listener.connections == []
            assert any("nothing was heard" in fields["why"] for _, fields in logged)

    way.play(story)


# --- the end ----------------------------------------------------------------------------------


def test_calls_in_flight_at_a_break_are_unknown_and_unsent_ones_unavailable(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            sent = connection.call(HOLD, b"sent")
            await until(lambda: theirs.held)
            unsent = connection.call(ECHO, b"of this turn")
            connection._wire.abort()  # pyright: ignore[reportAttributeAccessIssue]
            connection.lost(None)  # pyright: ignore[reportAttributeAccessIssue]
            with pytest.raises(Unknown, match="may have been executed"):
                await sent
            with pytest.raises(Unavailable):
                await unsent
            with pytest.raises(Unavailable):
                await connection.call(ECHO, b"afterwards")
            with pytest.raises(Unavailable):
                connection.tell(NOTE, b"afterwards")
            with pytest.raises(Unavailable):
                await connection.room()

    way.play(story)


def test_closing_sends_what_waits_and_tells_both_sides(way: Way) -> None:
    async def story() -> None:
        async with way.pair() as (connection, _, theirs):
            reasons: list[str] = []
            assert theirs.connection is not None
            theirs.connection.on_closed(reasons.append)
            connection.tell(NOTE, b"last words")
            connection.close()
            assert connection.closed
            await until(lambda: reasons)
            assert theirs.heard == [(NOTE, b"last words")]
            connection.on_closed(reasons.append)
            assert reasons == ["the other side closed it", "this member closed it"]

    way.play(story)


def test_a_listener_that_closes_ends_its_connections(way: Way) -> None:
    async def story() -> None:
        script = Script()
        listener = await way.transport("b").listen(way.address, script)
        connection = await way.transport("a").connect(listener.address, "b", Script())
        await until(lambda: listener.connections)
        await listener.close()
        await until(lambda: connection.closed)
        with pytest.raises(Unavailable):
            await way.transport("a").connect(listener.address, "b", Script())

    way.play(story)


def test_members_of_two_versions_speak_the_older_one(way: Way) -> None:
    """And what only the newer one knows is answered with an error, on a connection that goes on."""

    async def story() -> None:
        theirs, ours = Script(), Script()
        theirs.error = InvalidArgument("Expected a call of this version, but found the kind 2")
        listener = await way.transport("b", version=2).listen(way.address, theirs)
        newer = way.transport("a", version=3, oldest=2)
        connection = await newer.connect(listener.address, "b", ours)
        await until(lambda: theirs.connection)
        assert theirs.connection is not None
        assert (connection.version, theirs.connection.version) == (2, 2)
        with pytest.raises(InvalidArgument, match="of this version"):
            await connection.call(FAIL, b"news")
        connection.tell(FAIL, b"news")
        assert await connection.call(ECHO, b"still here") == b"still here"
        connection.close()
        await listener.close()

    way.play(story)


# --- who is let in ----------------------------------------------------------------------------

REFUSED = [
    ({"version": 2}, InvalidState, "version 1"),
    ({"cluster": "stocks"}, InvalidState, "belongs to 'stocks'"),
]


@pytest.mark.parametrize(("odd", "kind", "words"), REFUSED)
def test_another_version_or_cluster_is_refused_by_name(
    way: Way, odd: dict[str, Any], kind: type[HoldfastError], words: str, logged: Any
) -> None:
    async def story() -> None:
        script = Script()
        listener = await way.transport("b").listen(way.address, script)
        with pytest.raises(kind, match=words) as refused:
            await way.transport("a", **odd).connect(listener.address, "b", Script())
        assert refused.value.fields["field"] == next(iter(odd))
        assert script.connection is None
        assert [words in fields["why"] for _, fields in logged] == [True, True]
        await listener.close()

    way.play(story)


def test_a_member_at_the_address_of_another_is_refused(way: Way) -> None:
    async def story() -> None:
        listener = await way.transport("b").listen(way.address, Script())
        with pytest.raises(Forbidden, match="'b' is there"):
            await way.transport("a").connect(listener.address, "c", Script())
        await listener.close()

    way.play(story)


@pytest.mark.parametrize("name", ["tls", "simulated"])
def test_a_member_with_another_key_than_the_registered_one_is_refused(
    name: str, tmp_path: Path
) -> None:
    way = Way(name, tmp_path)

    async def story() -> None:
        script = Script()
        listener = await way.transport("b").listen(way.address, script)
        for odd in ({"key": "c"}, {"key": "b"}):  # unknown, and registered for somebody else
            with pytest.raises((Forbidden, Unavailable), match="key"):
                await way.transport("a", **odd).connect(listener.address, "b", Script())
        assert script.connection is None
        for registered in ({"a": "a", "b": "c"}, {"a": "a", "b": "a"}, {"a": "a"}):
            mistaken = way.transport("a", registered=registered)
            ours = Script()
            with pytest.raises(Forbidden, match="key"):
                await mistaken.connect(listener.address, "b", ours)
            assert ours.connection is None
        await listener.close()

    way.play(story)


def test_nobody_at_the_address_is_unavailable(way: Way) -> None:
    async def story() -> None:
        listener = await way.transport("b").listen(way.address, Script())
        await listener.close()
        with pytest.raises(Unavailable, match="'b'"):
            await way.transport("a").connect(listener.address, "b", Script())

    way.play(story)


def test_a_listener_that_never_greets_is_given_up(way: Way) -> None:
    async def story() -> None:
        transport = way.transport("b")
        ours = way.transport("a", bounds=HASTY)
        if isinstance(transport, SimulatedTransport):
            listener = await transport.listen(way.address, Script())
            transport.stall()
        else:
            transport.session = lambda *_: silent  # pyright: ignore
            listener = await transport.listen(way.address, Script())
        with pytest.raises(Unavailable, match=r"greeting|in time"):
            await ours.connect(listener.address, "b", Script())
        await listener.close()

    class Silent(Raw):
        """Takes a connection and says nothing."""

        opened = property(lambda self: asyncio.get_running_loop().create_future())
        close = Raw.pause

    silent: Any = Silent()
    way.play(story)


# --- what is not of the protocol --------------------------------------------------------------

HELLO = framed(hello_of(Identity("a", CLUSTER)))
GARBAGE = {
    "bytes before the greeting": (b"GET / HTTP/1.1\r\n\r\n", "more than"),
    "a first frame that is no greeting": (framed(b"\xc1garbage"), "not a greeting"),
    "a greeting that is too large": (framed(bytes(5_000)), "more than"),
    "a greeting of another protocol": (
        framed(b"\x95\x01\xa4smtp\x01\xa1a\xa1c"), "the protocol 'smtp'",
    ),
    "no greeting at all": (b"", "no greeting"),
    "garbage behind the greeting": (HELLO + framed(b"\xc1\xc1\xc1"), "not a list of messages"),
    "a frame that is too large": (HELLO + b"\xff\xff\xff\xff", "more than"),
    "an answer to nobody": (
        HELLO + framed(encode_messages([(ANSWER, 5, b"")])), "call 5, which is not open",
    ),
    "an unknown kind": (HELLO + framed(encode_messages([(-9, 0, b"")])), "the kind -9"),
}  # fmt: skip


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_closes_the_connection_with_a_clear_log_and_nothing_else(
    way: Way, what: str, logged: Any
) -> None:
    data, why = GARBAGE[what]

    async def story() -> None:
        async with way.raw(bounds=QUICK if data else HASTY) as (peer, script, listener):
            peer.say(data)
            await until(peer.ended.is_set)
            assert [why in fields["why"] for _, fields in logged] == [True], logged
            assert script.heard == []
            other = await way.transport("a").connect(listener.address, "b", Script())
            assert await other.call(ECHO, b"fine") == b"fine"
            other.close()

    way.play(story)


def test_a_torn_frame_is_not_taken_and_logged(way: Way, logged: Any) -> None:
    async def story() -> None:
        async with way.raw() as (peer, script, _):
            await peer.greet()
            whole = framed(encode_messages([(NOTE, 0, b"whole")]))
            peer.say(whole + framed(encode_messages([(NOTE, 0, b"x" * 300_000)]))[:200_000])
            await until(lambda: script.heard)
            peer.wire.close()
            await until(lambda: logged)
            assert "middle of a frame" in logged[0][1]["why"]
            assert script.heard == [(NOTE, b"whole")]

    way.play(story)


def test_a_peer_that_does_not_wait_for_answers_is_not_served_without_bound(
    way: Way, logged: Any
) -> None:
    async def story() -> None:
        async with way.raw(bounds=SMALL) as (peer, script, _):
            await peer.greet()
            for number in range(1, 30):
                peer.say(framed(encode_messages([(HOLD, number, bytes(32 * KIB))])))
            await until(peer.ended.is_set)
            assert len(script.held) < 15
            assert "without waiting for answers" in logged[0][1]["why"]

    way.play(story)
