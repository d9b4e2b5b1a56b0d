"""A folder of the version before epochs opens, is read, written on and upgraded."""

import asyncio
import struct
from pathlib import Path

import msgspec
from crc32c import crc32c

from holdfast.journal import Append, Appended, Refused
from holdfast.journal.local import JournalReader, LocalJournal, verify
from holdfast.journal.local.names import EPOCHS
from holdfast.limits import KIB, SEGMENT_BYTES_MIN

# A frozen copy of how that version wrote: its headers had a sequence of 64 bits and no epoch.
_FIELDS = struct.Struct("<IIQQQIIII")


def _frame(
    body: bytes, offset: int, sequence: int, position: int, commit: int, count: int, partition: int
) -> bytes:
    fields = _FIELDS.pack(
        crc32c(body),
        len(body),
        offset,
        1_000 + offset,
        sequence,
        position,
        commit,
        count,
        partition,
    )
    return struct.pack("<4sI", b"HFJ1", crc32c(fields)) + fields + body


def _body(entries: list[bytes]) -> bytes:
    body = struct.pack(f"<{len(entries)}I", *map(len, entries)) + b"".join(entries)
    return body + bytes(-len(body) % 8)


def _segment(sequence: int, previous_end: int, first: int, count: int) -> bytes:
    """A link and `count` commits of two entries for partition 1."""
    data = b""
    for number in range(count):
        commit = len(data)
        if not data:
            data += _frame(struct.pack("<Q", previous_end), 0, sequence, 0, 0, 0, 0)
        offset = first + 2 * number
        entries = [b"%d" % offset, b"%d" % (offset + 1)]
        data += _frame(_body(entries), offset, sequence, len(data), commit, 2, 1)
    return data


def _part(data: bytes) -> bytes:
    return struct.pack("<4sII", b"HFX1", len(data), crc32c(data)) + data


def _older_folder(root: Path) -> None:
    """Two partitions; a sealed segment with its index and one that is written, as it was."""
    topic = root / "t"
    topic.mkdir(parents=True)
    sealed = _segment(1, 0, 0, 10)
    (topic / f"{1:020}.segment").write_bytes(sealed)
    summary = {
        "sequence": 1, "end": len(sealed), "last_ms": 1_018, "first": {1: 0}, "next": {1: 20},
    }  # fmt: skip
    points = {1: (struct.pack("<Q", 0), struct.pack("<Q", 1_000), struct.pack("<I", 64))}
    index = _part(msgspec.msgpack.encode(summary)) + _part(msgspec.msgpack.encode(points))
    (topic / f"{1:020}.index").write_bytes(index)
    active = _segment(2, len(sealed), 20, 5)
    (topic / f"{2:020}.segment").write_bytes(active + bytes(SEGMENT_BYTES_MIN - len(active)))
    mark = struct.pack("<QQ", 2, len(active))
    (topic / "durable").write_bytes(mark + struct.pack("<I", crc32c(mark)))
    (topic / "earliest").write_bytes(bytes(2 * 4096))
    (topic / "topic.json").write_text('{"partitions": 2, "retention": {}}')


def test_a_folder_of_the_version_before_epochs_opens_and_goes_on(tmp_path: Path) -> None:
    _older_folder(tmp_path)
    expected = [b"%d" % number for number in range(30)]
    reader = JournalReader.open(str(tmp_path))
    assert [each.payload for each in reader.read_now("t", 1, 0)] == expected
    assert not (tmp_path / "t" / EPOCHS).exists(), "a reader writes nothing"
    assert not any(report.damage for report in verify(str(tmp_path)))

    async def story() -> None:
        journal = LocalJournal.open(tmp_path, segment_bytes=SEGMENT_BYTES_MIN)
        assert [each.payload for each in journal.read_now("t", 1, 0)] == expected
        found = await journal.take("t", 1)
        assert (found.epoch, found.next) == (1, 30)
        assert await journal.append_many([Append("t", 1, [b"30"], 1, 30)]) == [Appended(30, 31)]
        for _ in range(100):
            await journal.append("t", 2, [bytes(KIB)])
        await journal.close()
        again = LocalJournal.open(tmp_path, segment_bytes=SEGMENT_BYTES_MIN)
        assert [each.payload for each in again.read_now("t", 1, 0)] == [*expected, b"30"]
        (outcome,) = await again.append_many([Append("t", 1, [b"x"], 0, 31)])
        assert isinstance(outcome, Refused), "the frame of epoch 1 is remembered"
        again.discard("t", 1, 31)
        await again.close()

    asyncio.run(story())
    assert (tmp_path / "t" / EPOCHS).exists()
    assert not any(report.damage for report in verify(str(tmp_path)))
    assert [each.payload for each in reader.read_now("t", 2, 99)] == [bytes(KIB)]
