"""Frames: what is written is read, and every flipped bit is noticed."""

import pytest

from holdfast.journal.local.frame import (
    ALIGNMENT_BYTES,
    HEADER_BYTES,
    decode_link,
    frame_bytes,
    payloads,
    scan,
)
from holdfast.journal.local.stage import Stage, Staging
from holdfast.limits import KIB

SEQUENCE = 7
Commit = list[tuple[int, list[bytes]]]  # entries for partitions


def staging(partition: int, entries: list[bytes]) -> Staging:
    """An append as the stage takes it."""
    lengths = [len(entry) for entry in entries]
    return Staging(partition, entries, lengths, frame_bytes(lengths))


def segment(commits: list[Commit], previous_end: int = 0) -> bytes:
    """The bytes of commits one after the other."""
    stage, data = Stage(), b""
    next_offsets = [0] * 10
    for commit in commits:
        stage.clear()
        stage.add([staging(partition, entries) for partition, entries in commit])
        for header in stage.place(next_offsets, [0] * 10, 5_000, SEQUENCE, len(data), previous_end):
            next_offsets[header.partition] = header.next_offset
        with stage.data() as written:
            data += written
    return data


@pytest.mark.parametrize("entries", [[b""], [b"a"], [b"a", b"", b"ccc"], [bytes(5 * KIB)] * 3])
def test_a_frame_gives_back_its_entries(entries: list[bytes]) -> None:
    data = segment([[(3, entries)]])
    assert len(data) % ALIGNMENT_BYTES == 0
    (_, header) = scan(data, SEQUENCE).headers
    assert payloads(data, header.body_position, header) == entries
    assert (header.partition, header.entry_count, header.end) == (3, len(entries), len(data))


def test_a_link_says_where_the_segment_before_ended() -> None:
    data = segment([[(1, [b"a"])]], previous_end=4711)
    assert decode_link(data, SEQUENCE) == 4711
    assert decode_link(data, SEQUENCE + 1) is None
    assert decode_link(bytes(100), SEQUENCE) is None


def test_zeros_after_the_last_frame_are_its_end() -> None:
    data = segment([[(1, [b"a"])]])
    assert scan(data + bytes(3 * 1024 * KIB), SEQUENCE).fault is None
    assert scan(data + bytes(3 * 1024 * KIB) + b"x", SEQUENCE).fault is not None


def test_frames_of_another_segment_or_place_do_not_pass() -> None:
    data = segment([[(1, [b"a"])]])
    assert scan(data, SEQUENCE + 1).headers == []
    assert len(scan(data + data, SEQUENCE).headers) == 2


def test_a_fault_names_the_last_intact_header_behind_it() -> None:
    commits: list[Commit] = [
        [(1, [b"a" * 100])],
        [(1, [b"b" * 100]), (2, [b"c"])],
        [(1, [b"d"])],
    ]
    data = bytearray(segment(commits))
    _, first, second, *_, last = scan(data, SEQUENCE).headers
    data[second.position + 60] ^= 1
    fault = scan(data, SEQUENCE).fault
    assert fault is not None
    assert fault.position == first.end
    assert fault.later == last
    assert last.commit_position == last.position


def test_every_flipped_bit_of_a_segment_is_noticed() -> None:
    small: list[Commit] = [[(2, [bytes(range(256)), b"", b"z"])], [(3, [b"x" * 81] * 2)]]
    rest_bytes = 64 * KIB - len(segment(small))
    large: Commit = [(1, [b"y" * (rest_bytes - HEADER_BYTES - 4)])]
    data = bytearray(segment([large, *small]))
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


def test_what_is_taken_back_from_the_stage_is_not_in_the_commit() -> None:
    stage = Stage()
    stage.add([staging(1, [b"kept"])])
    wrong = staging(2, [b"good", "text"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        stage.add([staging(4, [b"before it"]), wrong])
    with pytest.raises(TypeError):
        stage.add([wrong])
    stage.add([staging(3, [b"also kept"])])
    stage.place([0] * 10, [0] * 10, 5_000, SEQUENCE, 0, 0)
    with stage.data() as data:
        found = scan(bytes(data), SEQUENCE)
    assert [header.partition for header in found.headers] == [0, 1, 3]
    assert found.fault is None
