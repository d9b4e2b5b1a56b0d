"""What a member knows of its cluster beside etcd: for the day on which etcd is an older copy.

Chains that were read are remembered in a file of the member's folder. Nothing is decided by it
while etcd is well: the file is read when somebody repairs an etcd that was rolled back.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.files import replace_file
from holdfast.journal.cluster.messages import Survey, Surveyed
from holdfast.limits import CLUSTER_REMEMBER_MS
from holdfast.logs import log
from holdfast.sequence.api import Chain
from holdfast.sequence.knowledge import DiskSeen, Knowledge

if TYPE_CHECKING:
    from holdfast.cluster.member import ClusterMember

REMEMBERED_FILE = "known-chains"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Chain]).decode


class KnownChains:
    """Keeps the newest chain of each partition in a file; a moment may be missing after a crash."""

    def __init__(self, folder: Path) -> None:
        self.chains = _remembered(folder / REMEMBERED_FILE)
        self._path = folder / REMEMBERED_FILE
        self._writing: asyncio.Task[None] | None = None

    def learned(self, chain: Chain) -> None:
        """A chain was read; one that is older than what is remembered changes nothing."""
        known = self.chains.get(chain.partition)
        if chain.last is None or (known is not None and known.epoch > chain.epoch):
            return
        self.chains[chain.partition] = chain
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        await asyncio.sleep(CLUSTER_REMEMBER_MS / 1_000)
        self._writing = None
        await self._write()

    async def _write(self) -> None:
        data = _encode(list(self.chains.values()))
        try:
            await asyncio.to_thread(replace_file, self._path, data)
        except OSError as error:
            log.warning("known chains not remembered", path=str(self._path), error=str(error))

    async def close(self) -> None:
        """Writes what is not written yet."""
        if self._writing is not None:
            self._writing.cancel()
            await self._write()


def _remembered(path: Path) -> dict[int, Chain]:
    """What the file says; nothing if it is not there or cannot be read."""
    try:
        return {each.partition: each for each in _decode(path.read_bytes())}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("known chains not read", path=str(path), error=str(error))
        return {}


async def knowledge_of(member: "ClusterMember") -> Knowledge:
    """What a member has read of etcd, and what its disk has seen."""
    journal, disk, number = member.journal, member.disk, member.publisher.number
    remembered = {} if member.remembering is None else member.remembering.chains
    chains: list[Chain] = []
    seen: dict[int, DiskSeen] = {}
    for partition in range(1, member.settings.partitions + 1):
        known = journal.chain(partition)
        chains.append(max(known, remembered.get(partition, known), key=lambda each: each.epoch))
        survey = await journal.called(member.name, Survey(disk.disk, partition))
        assert isinstance(survey, Surveyed), survey
        newest = max((epoch for epoch, counts in survey.counts.items() if counts), default=0)
        seen[partition] = DiskSeen(survey.promise, newest)
    cuts = await member.kept_cuts(number, number) if number else ()
    return Knowledge(
        member.name, journal.replica, disk.boots, member.peers.greeting.nonce, member.settings,
        list(member.roster.registered.values()), [each for each in chains if each.ranges], seen,
        *((cuts[-1].number, cuts[-1].nonce) if cuts else (0, "")),
    )  # fmt: skip
