"""What the cluster demo found, compared with the logs that every member gives out."""

import hashlib
from collections.abc import Sequence

import msgspec

from holdfast.cli.demo.cluster_load import Acknowledged
from holdfast.client.remote import RemoteApi
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.partition import DISPATCH
from holdfast.limits import ORDER_SPANS_MAX, READ_BYTES_MAX
from holdfast.records import RecordKind, ValueType

_decode_entries = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode


class MemberKilled(msgspec.Struct, frozen=True, rename="camel"):
    """One kill, and how long its partitions were without an owner."""

    member: str
    at_s: float
    again_s: dict[int, float]  # by partition that it owned, until it acknowledged tasks again
    ordered_s: float  # the longest time without a cut around the kill


class ClusterVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """Whether everything that was acknowledged is there once, on every member, in one order."""

    tasks: int
    acknowledged: int
    lost: int
    doubled: int
    orders: int  # different ones: one if all members tell the same
    kills: list[MemberKilled]
    seconds: float

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.orders != 1)


class MemberLog(msgspec.Struct, frozen=True):
    """What one member tells of all logs."""

    created: dict[str, list[str]]  # by idempotency key, the keys of the tasks that were made
    order: str  # a digest over all sequence ids up to a cut


async def read_member(url: str, up_to_cut: int) -> MemberLog:
    """Everything that a member gives out, and the order up to a cut."""
    api = RemoteApi(url)
    try:
        created: dict[str, list[str]] = {}
        for each in (await api.journal.bounds()).partitions:
            at = each.earliest
            while at < each.next:
                entries = _decode_entries(
                    await api.journal.read(each.partition_id, at, READ_BYTES_MAX)
                )
                if not entries:
                    break
                for record in DISPATCH.codec.decode_many([entry[2] for entry in entries]):
                    what = record.kind, record.value_type, record.intent
                    if what == (RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED):
                        made = created.setdefault(record.value.idempotency_key, [])
                        made.append(str(record.key))
                at = entries[-1][0] + 1
        return MemberLog(created, await _order(api, up_to_cut))
    finally:
        await api.close()


async def _order(api: RemoteApi, up_to_cut: int) -> str:
    digest, cut = hashlib.sha256(), 0
    while cut <= up_to_cut:
        page = await api.cluster.order(cut, ORDER_SPANS_MAX)
        for span in page.items:
            if span.cut <= up_to_cut:
                digest.update(msgspec.json.encode(span))
        if page.next_cut <= cut:
            break
        cut = page.next_cut
    return digest.hexdigest()


def judge(
    sent: int,
    acknowledged: Sequence[Acknowledged],
    logs: Sequence[MemberLog],
    kills: list[MemberKilled],
    seconds: float,
) -> ClusterVerdict:
    """Compares what was acknowledged with what every member has."""
    lost = sum(
        any(each.task_key not in log.created.get(each.key, ()) for log in logs)
        for each in acknowledged
    )
    doubled = sum(any(len(made) > 1 for made in log.created.values()) for log in logs)
    orders = len({log.order for log in logs})
    return ClusterVerdict(sent, len(acknowledged), lost, doubled, orders, kills, seconds)
