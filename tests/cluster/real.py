"""What must be true of a cluster of real processes, whatever was done to them."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from bench.ours.cluster import OurCluster
from bench.ours.cluster_cuts import CutFollower
from bench.ours.cluster_load import Completed, Submitted

from holdfast.client.remote import RemoteApi
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.partition import DISPATCH
from holdfast.journal.cluster.opened import OPENED_TOPIC, is_opened
from holdfast.journal.cluster.promises import DiskNotes
from holdfast.journal.cluster.runs import LogRuns, spans_of
from holdfast.journal.local import JournalReader, RealDisk
from holdfast.limits import READ_BYTES_MAX
from holdfast.records import RecordKind, ValueType
from holdfast.sequence.api import Chain, Cut, CutPositions, LogKey
from holdfast.sequence.opening import open_coordination
from holdfast.sequence.order import TotalOrder

_decode_entries = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode

CAUGHT_UP_SECONDS_MAX = 10.0

Log = dict[int, bytes]  # payloads by offset


class Disk(NamedTuple):
    """What the folder of a member has of the records of all partitions."""

    ranges: dict[tuple[int, int, int], bytes]  # by partition, epoch and number
    logs: dict[int, Log]  # by partition, as its chain of ranges says; void entries are none


class Checked(NamedTuple):
    """What was looked at, for a test to see that it was not nothing."""

    acknowledged: int
    completed: int
    entries: int
    ordered: int
    epochs: int


def check_all(
    cluster: OurCluster, follower: CutFollower, noted: Iterable[Submitted | Completed]
) -> Checked:
    """Everything, on a cluster all of whose members run; timers may go on."""
    noted = list(noted)
    submitted = [each for each in noted if isinstance(each, Submitted)]
    completed = [each for each in noted if isinstance(each, Completed)]
    chains = asyncio.run(_chains(cluster.etcd.url))
    _check_one_owner_an_epoch(chains)
    through = {
        name: asyncio.run(through_api(member.url, len(chains)))
        for name, member in cluster.members.items()
    }
    logs = next(iter(through.values()))
    for name, found in through.items():
        _check_goes_on(name, logs, found)
    check_tasks(logs, submitted, completed)
    follower.wait_past(follower.cuts[-1].number + 2)  # by then they hold all of these logs
    cuts = list(follower.cuts)
    assert follower.missed == 0, "cuts were compacted before they were read"
    folders = {name: each.folder for name, each in cluster.members.items()}
    disks = _disks_with(cuts, folders, cluster.etcd.url)
    check_disks(disks, logs)
    ordered = check_order(cuts, disks, logs)
    epochs = {(partition, epoch) for each in disks.values() for partition, epoch, _ in each.ranges}
    entries = sum(len(each) for each in logs.values())
    return Checked(len(submitted), len(completed), entries, ordered, len(epochs))


# --- tasks ------------------------------------------------------------------------------------


def check_tasks(
    logs: Mapping[int, Log], submitted: Iterable[Submitted], completed: Iterable[Completed]
) -> None:
    """Every task that was acknowledged is there once, as it was; what was done was done once."""
    created: dict[str, list[tuple[str, int]]] = {}
    done: dict[str, list[int]] = {}
    for log in logs.values():
        for record in DISPATCH.codec.decode_many(list(log.values())):
            if (record.kind, record.value_type) != (RecordKind.EVENT, ValueType.JOB):
                continue
            if record.intent == JobIntent.CREATED:
                number = msgspec.json.decode(record.value.payload)["n"]
                created.setdefault(record.value.idempotency_key, []).append(
                    (str(record.key), number)
                )
            elif record.intent == JobIntent.COMPLETED:
                number = msgspec.json.decode(record.value.result)["n"]
                done.setdefault(str(record.key), []).append(number)
    for each in submitted:
        found = created.get(each.key, [])
        assert found == [(each.task_key, each.number)], f"{each} was acknowledged; found {found}"
    for end in completed:
        assert done.get(end.task_key) == [end.number], f"{end} was acknowledged"
    twice = [key for key, numbers in done.items() if len(numbers) > 1]
    assert not twice, f"jobs were completed twice: {twice}"


async def through_api(url: str, partitions: int) -> dict[int, Log]:
    """All logs, as a member gives them out."""
    api = RemoteApi(url)
    try:
        bounds = await api.journal.bounds()
        logs: dict[int, Log] = {}
        for each in bounds.partitions:
            log = logs[each.partition_id] = {}
            at = each.earliest
            while at < each.next:
                body = await api.journal.read(each.partition_id, at, READ_BYTES_MAX)
                entries = _decode_entries(body)
                if not entries:
                    break
                log |= {offset: payload for offset, _, payload in entries}
                at = entries[-1][0] + 1
        assert len(logs) == partitions
        return logs
    finally:
        await api.close()


def _check_goes_on(name: str, logs: Mapping[int, Log], found: Mapping[int, Log]) -> None:
    """A member that is asked later has the same, and maybe more: timers go on meanwhile."""
    for partition, log in logs.items():
        later = found[partition]
        earliest, end = min(later, default=0), max(log, default=-1) + 1
        expected = {offset: payload for offset, payload in log.items() if offset >= earliest}
        same = {offset: payload for offset, payload in later.items() if offset < end}
        others = {at for at in expected.keys() | same.keys() if expected.get(at) != same.get(at)}
        assert not others, (
            f"member {name} gives out another log of partition {partition}: offsets"
            f" {sorted(others)[:10]} of {len(others)} differ; before it was {min(log, default=0)}"
            f" to {end}, now it is {earliest} to {max(later, default=-1) + 1}"
        )


# --- owners -----------------------------------------------------------------------------------


async def _chains(etcd: str) -> dict[int, Chain]:
    coordination = open_coordination(etcd, "checker")
    try:
        return await coordination.chains()
    finally:
        await coordination.close()


def _check_one_owner_an_epoch(chains: Mapping[int, Chain]) -> None:
    for chain in chains.values():
        epochs = [each.epoch for each in chain.ranges]
        assert epochs == sorted(set(epochs)), f"epochs of partition {chain.partition}: {epochs}"


# --- disks ------------------------------------------------------------------------------------


def _disks_with(cuts: Sequence[Cut], folders: Mapping[str, Path], etcd_url: str) -> dict[str, Disk]:
    """The disks, once each has what the cuts order: the slowest of three may be behind a quorum."""
    ends: Counter[int] = Counter()
    for cut in cuts:
        for key, grown in cut.grown.items():
            ends[key.partition] += grown if key.topic == OPENED_TOPIC else 0
    deadline = time.monotonic() + CAUGHT_UP_SECONDS_MAX
    while True:
        chains = asyncio.run(_chains(etcd_url))  # a partition may have moved meanwhile
        disks = {name: read_disk(folder, chains) for name, folder in folders.items()}
        behind = [
            f"{name} ends at {max(log, default=-1)} of partition {partition}, cuts at {end}"
            for name, disk in disks.items()
            for partition, end in ends.items()
            if max(log := disk.logs[partition], default=-1) < end - 1
        ]
        if not behind:
            return disks
        assert time.monotonic() < deadline, behind
        time.sleep(0.05)


def read_disk(folder: Path, chains: Mapping[int, Chain]) -> Disk:
    """What is in the folder of a member, which may run."""
    root = str(folder / "journal")
    noted = DiskNotes(RealDisk(), root).noted.runs.get(OPENED_TOPIC, {})
    reader = JournalReader.open(root)
    ranges: dict[tuple[int, int, int], bytes] = {}
    logs: dict[int, Log] = {}
    try:
        for partition, chain in chains.items():
            bounds = reader.bounds(OPENED_TOPIC, partition)
            runs = LogRuns(bounds.next, noted.get(partition, []))
            spans = spans_of(chain, OPENED_TOPIC)
            log = logs[partition] = {}
            for at, run in enumerate(runs.runs):
                end = runs.runs[at + 1].physical if at + 1 < len(runs.runs) else bounds.next
                for entry in _physical(reader, partition, max(run.physical, bounds.earliest), end):
                    number = run.number + entry[0] - run.physical
                    ranges[partition, run.epoch, number] = entry[1]
                    span = spans.get(run.epoch)
                    if span is not None and (span.length is None or number < span.length):
                        log[span.start + number] = entry[1]
    finally:
        reader.let_go()
    return Disk(ranges, logs)


def _physical(
    reader: JournalReader, partition: int, start: int, end: int
) -> Iterable[tuple[int, bytes]]:
    at = start
    while at < end:
        entries = reader.read_now(OPENED_TOPIC, partition, at)
        if not entries:
            return
        for entry in entries:
            if entry.offset >= end:
                return
            yield entry.offset, entry.payload
        at = entries[-1].offset + 1


def check_disks(disks: Mapping[str, Disk], logs: Mapping[int, Log]) -> None:
    """All disks have the same logs, those that the members give out, and one owner wrote each.

    Two owners of one epoch would have written different entries under one number, void ones, too.
    """
    everything: dict[tuple[int, int, int], bytes] = {}
    for name, disk in disks.items():
        for place, payload in disk.ranges.items():
            assert everything.setdefault(place, payload) == payload, (
                f"{name} has another entry than others at (partition, epoch, number) {place}"
            )
        for partition, log in logs.items():
            found = disk.logs[partition]
            for offset, payload in log.items():
                assert found.get(offset) == payload, f"{name} lacks {offset} of {partition}"
            last = max(log, default=-1)
            more = [
                offset
                for offset, payload in found.items()
                if offset <= last and offset not in log and not is_opened(payload)
            ]
            assert not more, f"{name} has entries of {partition} that are not given out: {more}"


# --- the order --------------------------------------------------------------------------------


def check_order(cuts: Sequence[Cut], disks: Mapping[str, Disk], logs: Mapping[int, Log]) -> int:
    """The same entries have the same sequence ids on all disks; how many there are."""
    assert [cut.number for cut in cuts] == list(range(1, len(cuts) + 1))
    order = TotalOrder(CutPositions())
    for cut in cuts:
        order.extend(cut)
    digests: dict[str, str] = {}
    count = 0
    for name, disk in disks.items():
        digest, count = hashlib.sha256(), 0
        for span in order.spans():
            if span.key.topic != OPENED_TOPIC:
                continue
            log = disk.logs[span.key.partition]
            assert span.offset + span.entries - 1 in log, (
                f"{name} lacks what {span} orders: it has up to {max(log, default=-1)},"
                f" cuts are at {order.at}"
            )
            for past in range(span.entries):
                digest.update(b"%d " % (span.id + past) + log[span.offset + past])
                count += 1
        digests[name] = digest.hexdigest()
    assert len(set(digests.values())) == 1, f"members have other orders: {digests}"
    for partition, log in logs.items():
        end = order.at.offsets.get(LogKey(OPENED_TOPIC, partition), 0)
        assert end > max(log, default=-1), f"cuts end at {end} of partition {partition}"
    return count
