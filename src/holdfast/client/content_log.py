"""The log of packages over the Api of a node, as publishers and subscribers elsewhere have it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.blobs import Blobs
from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.topics import ContentTopic
from holdfast.gateway.api import Api
from holdfast.gateway.content.shapes import (
    NewAnnouncement,
    NewPackage,
    ProgressNote,
    SnapshotNote,
    StatusNote,
    TopicQuery,
    TopicWord,
)
from holdfast.limits import CONTENT_BLOBS_ASKED_MAX, CONTENT_STATUSES_MAX

_decode = msgspec.msgpack.Decoder(TopicEntries).decode


class NodeContentLog:
    """Keeps the port `ContentLog` by asking a node.

    Subscribers of one program mostly wait at the same place: their reads are one request.
    """

    def __init__(self, api: Api, blobs: Blobs) -> None:
        self.blobs = blobs
        self._content = api.content
        self._reading: dict[TopicQuery, asyncio.Task[TopicEntries]] = {}

    async def publish(self, package: Package) -> Published:
        given = _fields(package, NewPackage, action=package.action.name)
        receipt = await self._content.publish(NewPackage(**given))
        return Published(receipt.offset, receipt.number, receipt.waited_ms)

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        missing: list[str] = []
        for at in range(0, len(blobs), CONTENT_BLOBS_ASKED_MAX):
            missing += await self._content.missing(blobs[at : at + CONTENT_BLOBS_ASKED_MAX])
        return missing

    async def read(
        self, topic: ContentTopic, partition: int, offset: int, *, bytes_max: int, wait_ms: int
    ) -> TopicEntries:
        query = TopicQuery(TOPIC_WORDS[topic], offset, partition, bytes_max, wait_ms)
        reading = self._reading.get(query)
        if reading is None:
            reading = self._reading[query] = asyncio.create_task(self._read(query))
            reading.add_done_callback(lambda done: self._has_read(query, done))
        return await asyncio.shield(reading)  # others may wait for it, too

    async def _read(self, query: TopicQuery) -> TopicEntries:
        return _decode(await self._content.read(query))

    def _has_read(self, query: TopicQuery, done: "asyncio.Task[TopicEntries]") -> None:
        del self._reading[query]
        if not done.cancelled():
            done.exception()  # callers that still wait are told

    async def announce(self, discovery: Discovery) -> None:
        progress = [ProgressNote(**_fields(each, ProgressNote)) for each in discovery.progress]
        given = _fields(discovery, NewAnnouncement, progress=progress)
        await self._content.announce(NewAnnouncement(**given))

    async def report(self, statuses: Sequence[PackageStatus]) -> None:
        notes = [
            StatusNote(**_fields(each, StatusNote, outcome=each.outcome.name)) for each in statuses
        ]
        for at in range(0, len(notes), CONTENT_STATUSES_MAX):
            await self._content.report(notes[at : at + CONTENT_STATUSES_MAX])

    async def snapshot_taken(self, event: SnapshotTaken) -> None:
        progress = [ProgressNote(**_fields(each, ProgressNote)) for each in event.progress]
        given = _fields(event, SnapshotNote, progress=progress)
        await self._content.snapshot_taken(SnapshotNote(**given))


TOPIC_WORDS: dict[ContentTopic, TopicWord] = {
    ContentTopic.PACKAGES: "packages",
    ContentTopic.STATUSES: "statuses",
    ContentTopic.DISCOVERIES: "discoveries",
    ContentTopic.COMMANDS: "commands",
    ContentTopic.EVENTS: "events",
}


def _fields(message: msgspec.Struct, shape: type[msgspec.Struct], **others: Any) -> dict[str, Any]:
    """What a shape takes of a message with the same names."""
    names = [each for each in shape.__struct_fields__ if each not in others]
    return {name: getattr(message, name) for name in names} | others
