"""What decides between members, without sockets: frames, bytes that are held, signs of life."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transport.ways import framed

from holdfast.errors import Forbidden, InvalidArgument, InvalidState, ResourceExhausted
from holdfast.limits import CALL_BYTES, HELLO_BYTES_MAX, KIB
from holdfast.transport import ConnectionBounds, Identity
from holdfast.transport.framing import BUFFER_BYTES, HEAD_BYTES, LARGE_BYTES, Incoming, frames_of
from holdfast.transport.greeting import refusal
from holdfast.transport.keepalive import Keepalive
from holdfast.transport.messages import Fault, Message, decode_messages
from holdfast.transport.outbox import Outbox, UnansweredCalls

# --- frames -----------------------------------------------------------------------------------


def read(incoming: Incoming, data: bytes, cuts: Random, read_max: int) -> list[bytes]:
    """Feeds bytes in random portions and gives the frames that came of them."""
    frames: list[bytes] = []
    begin = 0
    while begin < len(data):
        room = incoming.room()
        assert len(room) > 0, "there is always room to read into"
        count = min(len(room), len(data) - begin, cuts.randint(1, read_max))
        room[:count] = data[begin : begin + count]
        begin += count
        frames += map(bytes, incoming.filled(count))
    return frames


SIZES = st.one_of(
    st.integers(0, 40),
    st.integers(BUFFER_BYTES - 20, BUFFER_BYTES + 20),
    st.integers(0, 3 * BUFFER_BYTES),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(SIZES, max_size=8), st.integers(0, 2**32), st.sampled_from([7, 5_000, 400_000]))
def test_frames_are_put_together_however_their_bytes_come(
    sizes: list[int], seed: int, read_max: int
) -> None:
    cuts = Random(seed)
    bodies = [cuts.randbytes(min(size, 2_000) if read_max == 7 else size) for size in sizes]
    incoming = Incoming(4 * BUFFER_BYTES)
    incoming.admit()
    data = b"".join(map(framed, bodies))
    assert read(incoming, data, cuts, read_max) == bodies
    assert not incoming.in_frame


def test_a_stranger_can_make_a_member_hold_little_and_one_that_is_admitted_more() -> None:
    incoming = Incoming(BUFFER_BYTES)
    assert len(incoming.room()) == HEAD_BYTES + HELLO_BYTES_MAX
    hello, large = bytes(HELLO_BYTES_MAX), bytes(100_000)
    frames = incoming.filled(_put(incoming, framed(hello)))
    assert bytes(next(frames)) == hello
    incoming.admit()
    assert list(frames) == []
    assert read(incoming, framed(large), Random(1), 70_000) == [large]
    with pytest.raises(Fault, match="more than"):
        read(incoming, (BUFFER_BYTES + 1).to_bytes(HEAD_BYTES), Random(1), 4)
    with pytest.raises(Fault, match="more than"):
        read(Incoming(BUFFER_BYTES), (HELLO_BYTES_MAX + 1).to_bytes(HEAD_BYTES), Random(1), 4)


def test_what_follows_the_greeting_in_one_read_is_not_lost() -> None:
    incoming = Incoming(BUFFER_BYTES)
    frames = incoming.filled(_put(incoming, framed(b"hello") + framed(b"first") + b"\0\0"))
    assert bytes(next(frames)) == b"hello"
    incoming.admit()
    assert [bytes(frame) for frame in frames] == [b"first"]
    assert incoming.in_frame
    assert read(incoming, b"\0\x02ok", Random(1), 9) == [b"ok"]


def test_a_large_frame_does_not_leave_its_buffer_behind() -> None:
    incoming = Incoming(8 * BUFFER_BYTES)
    incoming.admit()
    assert len(read(incoming, framed(bytes(5 * BUFFER_BYTES)), Random(1), 99_999)) == 1
    assert len(incoming.room()) == BUFFER_BYTES


def _put(incoming: Incoming, data: bytes) -> int:
    incoming.room()[: len(data)] = data
    return len(data)


MESSAGE_SIZES = st.one_of(st.integers(0, 3_000), st.integers(LARGE_BYTES - 50, LARGE_BYTES + 50))
NUMBERS = st.sampled_from([0, 1, 127, 128, 70_000, 2**40])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 300), NUMBERS, MESSAGE_SIZES), max_size=40))
def test_messages_share_frames_up_to_the_size_and_keep_their_order(
    drawn: list[tuple[int, int, int]],
) -> None:
    messages: list[Message] = [(kind, number, bytes(size)) for kind, number, size in drawn]
    taken: list[list[Message]] = []
    for head, rest in frames_of(messages, 4_096):
        assert int.from_bytes(head[:HEAD_BYTES]) == len(head) + len(rest) - HEAD_BYTES
        taken.append(decode_messages(memoryview(head[HEAD_BYTES:] + rest)))
    assert [message for frame in taken for message in frame] == messages
    sizes = [[len(body) + 16 for _, _, body in frame] for frame in taken]
    assert all(len(frame) == 1 or sum(frame) <= 4_096 for frame in sizes)
    for first, second in pairwise(sizes):  # no frame could have had more
        assert max(first[0], second[0]) > LARGE_BYTES or sum(first) + second[0] > 4_096


# --- bytes that are held ----------------------------------------------------------------------

SMALL = ConnectionBounds(message_bytes_max=1_000, frame_bytes=500, held_bytes_max=2_000)


def test_calls_count_until_they_are_answered_and_tells_until_they_are_written() -> None:
    outbox = Outbox(SMALL)
    size = 500 - CALL_BYTES % 500
    calls = 0
    while outbox.refusal(size) is None:
        calls += 1
        outbox.add_call((0, calls, bytes(size)))
    assert (calls - 1) * (size + CALL_BYTES) < SMALL.held_bytes_max
    assert calls * (size + CALL_BYTES) >= SMALL.held_bytes_max
    assert outbox.unsent_calls() == set(range(1, calls + 1))
    list(outbox.take())
    assert outbox.unsent_calls() == set()
    assert isinstance(outbox.refusal(0), ResourceExhausted)
    outbox.answered(size)
    assert outbox.refusal(0) is None
    outbox.add((0, 0, bytes(1_000)))
    assert outbox.refusal(0) is None
    outbox.add((0, 0, bytes(1_000)))
    assert isinstance(outbox.refusal(0), ResourceExhausted)
    assert len(list(outbox.take())) == 2
    assert outbox.refusal(0) is None


def test_what_was_written_and_not_taken_counts_too() -> None:
    outbox = Outbox(SMALL)
    assert outbox.refusal(1_000, unsent=1_999) is None  # a large one is not starved by small ones
    assert isinstance(outbox.refusal(0, unsent=2_000), ResourceExhausted)
    assert isinstance(outbox.unread(2_000), ResourceExhausted)
    assert outbox.unread(1_999) is None
    assert isinstance(outbox.refusal(1_001), InvalidArgument)


def test_a_member_may_have_no_more_calls_open_than_its_own_bound_lets_it_send() -> None:
    outbox, serving = Outbox(SMALL), UnansweredCalls(SMALL)
    number = 0
    while outbox.refusal(700) is None:
        number += 1
        outbox.add_call((0, number, bytes(700)))
        assert serving.begin(700)
    while serving.begin(700):
        number += 1
    assert number < 10
    serving.end(700)
    serving.end(700)
    assert serving.begin(700)


# --- signs of life ----------------------------------------------------------------------------

PATIENT = ConnectionBounds(tick_ms=100, silent_ticks_max=3)


def ticks(keepalive: Keepalive, *looks: tuple[int, int]) -> str:
    return " ".join(keepalive.tick(heard, unsent).value for heard, unsent in looks)


def test_a_silent_peer_is_asked_once_and_given_up_within_the_named_span() -> None:
    assert ticks(Keepalive(PATIENT), *[(0, 0)] * 4) == "ask fine fine silent"
    assert PATIENT.silent_ms_max == 400


def test_any_byte_is_a_sign_of_life() -> None:
    looks = [(0, 0), (0, 0), (0, 0), (9, 0), (9, 0), (9, 0), (9, 0), (10, 0), (10, 0)]
    assert ticks(Keepalive(PATIENT), *looks) == "ask fine fine fine ask fine fine fine ask"


def test_a_peer_that_talks_and_does_not_read_is_given_up() -> None:
    looks = [(1, 50), (2, 50), (3, 50), (4, 70)]
    assert ticks(Keepalive(PATIENT), *looks) == "fine fine fine stuck"


def test_a_peer_that_reads_slowly_is_not() -> None:
    looks = [(number, 1_000 - number) for number in range(1, 50)]
    assert set(ticks(Keepalive(PATIENT), *looks).split()) == {"fine"}


# --- who is let in ----------------------------------------------------------------------------

ME = Identity("a", "orders")
KEYS = {"a": b"key of a", "b": b"key of b"}


@pytest.mark.parametrize(
    ("theirs", "expected", "key", "kind", "field"),
    [
        (Identity("b", "orders"), None, b"key of b", None, ""),
        (Identity("b", "orders"), "b", b"key of b", None, ""),
        (Identity("b", "orders", 2, 2), "b", b"key of b", InvalidState, "version"),
        (Identity("b", "stocks"), "b", b"key of b", InvalidState, "cluster"),
        (Identity("b", "orders"), "c", b"key of b", Forbidden, "member"),
        (Identity("a", "orders"), None, b"key of a", Forbidden, "member"),
        (Identity("b", "orders"), "b", b"key of a", Forbidden, "key"),
        (Identity("b", "orders"), "b", None, Forbidden, "key"),
        (Identity("d", "orders"), None, b"key of b", Forbidden, "key"),
    ],
)
def test_only_the_expected_member_with_its_own_key_is_let_in(
    theirs: Identity, expected: str | None, key: bytes | None, kind: type | None, field: str
) -> None:
    found = refusal(ME, theirs, expected, key, KEYS)
    assert (type(found) if found is not None else None) is kind
    assert found is None or found.fields["field"] == field


def test_where_no_keys_are_registered_the_address_is_trusted() -> None:
    assert refusal(ME, Identity("b", "orders"), None, None, None) is None


def test_the_bound_of_a_frame_leaves_room_for_the_largest_message() -> None:
    bounds = ConnectionBounds()
    assert bounds.held_bytes_max > bounds.frame_bytes > 64 * KIB
