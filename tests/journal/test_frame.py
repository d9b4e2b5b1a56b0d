"""Frames: what is written is read, and every flipped bit is noticed."""

import pytest

from holdfast.journal.local.frame import (
    ALIGNMENT_BYTES,
    Body,
    decode_link,
    encode_body,
    encode_header,
    encode_link,
    header_of,
    payloads,
    scan,
)
from holdfast.limits import KIB

SEQUENCE = 7


def body(partition: int, entries: list[bytes]) -> Body:
    return encode_body(partition, entries, [len(entry) for entry in entries])


def segment(commits: list[list[Body]], sequence: int = SEQUENCE) -> bytes:
    """The bytes of commits one after the other."""
    data = b""
    offset = 0
    for commit in commits:
        start = len(data)
        for each in commit:
            header = header_of(each, offset, 5_000, sequence, len(data), start)
            data += encode_header(header) + each.data
            offset += each.entry_count
    return data


@pytest.mark.parametrize("entries", [[b""], [b"a"], [b"a", b"", b"ccc"], [bytes(5 * KIB)] * 3])
def test_a_frame_gives_back_its_entries(entries: list[bytes]) -> None:
    data = segment([[body(3, entries)]])
    assert len(data) % ALIGNMENT_BYTES == 0
    (header,) = scan(data, SEQUENCE).headers
    assert payloads(data, header.body_position, header) == entries
    assert (header.partition, header.entry_count, header.end) == (3, len(entries), len(data))


def test_a_link_says_where_the_segment_before_ended() -> None:
    data = segment([[encode_link(4711), body(1, [b"a"])]])
    assert decode_link(data, SEQUENCE) == 4711
    assert decode_link(data, SEQUENCE + 1) is None
    assert decode_link(bytes(100), SEQUENCE) is None


def test_zeros_after_the_last_frame_are_its_end() -> None:
    data = segment([[body(1, [b"a"])]])
    assert scan(data + bytes(3 * 1024 * KIB), SEQUENCE).fault is None
    assert scan(data + bytes(3 * 1024 * KIB) + b"x", SEQUENCE).fault is not None


def test_frames_of_another_segment_or_place_do_not_pass() -> None:
    data = segment([[body(1, [b"a"])]])
    assert scan(data, SEQUENCE + 1).headers == []
    assert len(scan(data + data, SEQUENCE).headers) == 1


def test_a_fault_names_the_last_intact_header_behind_it() -> None:
    commits = [[body(1, [b"a" * 100])], [body(1, [b"b" * 100]), body(2, [b"c"])], [body(1, [b"d"])]]
    data = bytearray(segment(commits))
    first, second, *_, last = scan(data, SEQUENCE).headers
    data[second.position + 60] ^= 1
    fault = scan(data, SEQUENCE).fault
    assert fault is not None
    assert fault.position == first.end
    assert fault.later == last
    assert last.commit_position == last.position


def test_every_flipped_bit_of_a_segment_is_noticed() -> None:
    commits = [[encode_link(0), body(1, [b"x" * 8100] * 2)], [body(2, [bytes(range(256)) * 60])]]
    clean = segment(commits)
    filler_bytes = 64 * KIB - len(clean) - 64
    data = bytearray(segment([*commits, [body(3, [b"y" * (filler_bytes - 4 + 8)])]]))
    assert len(data) == 64 * KIB
    intact = scan(data, SEQUENCE)
    assert intact.fault is None
    unnoticed = 0
    for at in range(len(data)):
        value = data[at]
        for bit in range(8):
            data[at] = value ^ (1 << bit)
            unnoticed += scan(data, SEQUENCE).fault is None
        data[at] = value
    assert unnoticed == 0
    assert scan(data, SEQUENCE) == intact
