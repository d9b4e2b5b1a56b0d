"""What a start reads of the topics: from the last time that everything was remembered on."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from holdfast.content.messages import (
    NOWHERE,
    RememberedSubscribers,
    decode_announcement,
    decode_command,
    decode_event,
    decode_status,
)
from holdfast.content.ports import TopicEntry
from holdfast.content.publisher.state import ContentState
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.errors import DataLoss
from holdfast.journal import Entry, Journal
from holdfast.limits import (
    CONTENT_PACKAGES_KNOWN_MAX,
    CONTENT_REMEMBER_MS,
    CONTENT_REOPEN_BYTES,
    READ_BYTES_MAX,
)


class ReadBack(NamedTuple):
    """What is known after a start, and where each topic was read up to."""

    state: ContentState
    ends: dict[ContentTopic, int]
    remembered: int  # where everything was remembered last; NOWHERE if it never was
    marks: RememberedSubscribers


async def read_back(journal: Journal, kept_ms: int) -> ReadBack:
    """Rebuilds what is known."""
    marks, remembered = await _last_remembered(journal)
    packages_from = _packages_from(journal, marks)
    state = ContentState(kept_ms, packages_from)
    state.apply_marks(marks)
    starts = {
        # Packages come first: what the others say is about them. Commands are about failures.
        ContentTopic.PACKAGES: packages_from,
        ContentTopic.EVENTS: marks.events,
        ContentTopic.DISCOVERIES: remembered,
        ContentTopic.STATUSES: marks.statuses,
        ContentTopic.COMMANDS: 0,
    }
    ends: dict[ContentTopic, int] = {}
    for topic, start in starts.items():
        ends[topic] = journal.bounds(topic.topic, PARTITION).next
        async for entry in _entries(journal, topic, start, ends[topic]):
            try:
                apply_entry(state, topic, TopicEntry._make(entry))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise _unreadable(topic, entry.offset, error) from error
    return ReadBack(state, ends, remembered, marks)


def apply_entry(state: ContentState, topic: ContentTopic, entry: TopicEntry) -> None:
    """Applies a message of any topic."""
    offset, said_ms, payload = entry
    if topic is ContentTopic.PACKAGES:
        state.apply_package(entry)
    elif topic is ContentTopic.STATUSES:
        state.apply_status(decode_status(payload), offset, said_ms)
    elif topic is ContentTopic.COMMANDS:
        state.apply_command(decode_command(payload), said_ms)
    elif topic is ContentTopic.EVENTS:
        state.apply_event(decode_event(payload), said_ms)
    else:
        state.apply_announcement(decode_announcement(payload), said_ms)


async def _last_remembered(journal: Journal) -> tuple[RememberedSubscribers, int]:
    """The last time that everything was remembered, and where: looked for from the end on."""
    topic = ContentTopic.DISCOVERIES.topic
    earliest, end = journal.bounds(topic, PARTITION)
    newest_ms = await _newest_ms(journal, topic, earliest, end)
    span_ms = CONTENT_REMEMBER_MS
    while end > earliest:
        from_ms = newest_ms - span_ms
        start = journal.offset_at(topic, PARTITION, from_ms) if from_ms > 0 else earliest
        found: tuple[RememberedSubscribers, int] | None = None
        async for entry in _entries(journal, ContentTopic.DISCOVERIES, start, end):
            try:
                message = decode_announcement(entry.payload)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise _unreadable(ContentTopic.DISCOVERIES, entry.offset, error) from error
            if isinstance(message, RememberedSubscribers) and message.packages != NOWHERE:
                found = message, entry.offset
        if found is not None:
            return found
        if span_ms >= newest_ms:  # all was looked at; the first offset may be behind the earliest
            break
        end = start
        span_ms *= 4
    return RememberedSubscribers([]), NOWHERE


def _unreadable(topic: ContentTopic, offset: int, error: Exception) -> DataLoss:
    return DataLoss(
        f"Expected to read the message at offset {offset} of the topic {topic.topic}, but {error};"
        " start the node with the version of holdfast that wrote it",
        topic=topic.topic, offset=offset,
    )  # fmt: skip


async def _newest_ms(journal: Journal, topic: str, earliest: int, end: int) -> int:
    """When the last entry was written, as nearly as is needed."""
    step = 1
    while end > earliest:  # offsets may have gaps
        found = await journal.read(topic, PARTITION, max(end - step, earliest))
        if found:
            return found[-1].timestamp_ms
        if end - step <= earliest:
            break
        step *= 2
    return 0


def _packages_from(journal: Journal, marks: RememberedSubscribers) -> int:
    """Where packages are read from: from the marks on, and the newest in any case."""
    topic = ContentTopic.PACKAGES.topic
    earliest, end = journal.bounds(topic, PARTITION)
    if marks.packages == NOWHERE or end == earliest:
        return earliest  # their numbers are nowhere else
    entry_bytes = max(journal.bytes_used(topic) // (end - earliest), 1)
    recent = min(CONTENT_PACKAGES_KNOWN_MAX, CONTENT_REOPEN_BYTES // entry_bytes)
    return max(min(marks.packages, end - recent), earliest)


async def _entries(
    journal: Journal, topic: ContentTopic, start: int, end: int
) -> AsyncIterator[Entry]:
    """All entries of a topic from one offset up to another."""
    offset = max(start, journal.bounds(topic.topic, PARTITION).earliest)
    while offset < end:
        entries = await journal.read(topic.topic, PARTITION, offset, READ_BYTES_MAX)
        if not entries:
            return
        for entry in entries:
            if entry.offset >= end:
                return
            yield entry
        offset = entries[-1].offset + 1
        await asyncio.sleep(0)  # others have their turn
