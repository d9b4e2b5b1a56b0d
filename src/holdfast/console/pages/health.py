"""How the node is: its health with reasons, its partitions, its disk, its backups."""

from typing import Any, NamedTuple

from holdfast.console.numbers import NumberSamples
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.node.shapes import PartitionView

_READ = one(ResourceType.SYSTEM, Permission.READ)
_UPDATE = one(ResourceType.SYSTEM, Permission.UPDATE)
_HOME = "/console/health"


class HealthRow(NamedTuple):
    """A partition: where it is, and how far."""

    number: int
    state: str  # UP, DOWN: it has stopped, AWAY: its process or member is not reached
    member: str
    last_position: int
    processed_position: int
    unprocessed: int
    tables_behind: int | None  # None: no tables are kept, or not here


class HealthNumbers(NamedTuple):
    """What is on disk, and what was found when it was read."""

    log_bytes: float
    state_bytes: float
    free_bytes: float
    size_bytes: float
    snapshots: int
    snapshots_failed: int
    scrubs: int
    damage_found: int
    damaged_files: int
    tables_seconds: float | None  # None: no tables are kept


async def show(ask: PageAsk) -> PageReply:
    """Health for everybody who is known; numbers and backups for those who may see them."""
    shown: dict[str, Any] = {"disk": None, "backup": None, "may_back_up": False}
    samples = NumberSamples(b"")
    if await ask.may(_READ):
        samples = NumberSamples(await ask.api.node.metrics())
        shown["disk"] = _disk(samples)
        shown["backup"] = await ask.api.node.backup()
        shown["may_back_up"] = await ask.may(_UPDATE)
    topology = await ask.api.node.topology()
    return await ask.show(
        "health.html",
        health=await ask.api.node.health(),
        topology=topology,
        rows=_rows(topology.partitions, samples),
        **shown,
    )


def _rows(partitions: list[PartitionView], samples: NumberSamples) -> list[HealthRow]:
    is_open = _by_partition(samples, "holdfast_partition_open")
    behind = _by_partition(samples, "holdfast_pipeline_lag_records")
    return [
        HealthRow(
            each.partition_id,
            _state(each, is_open.get(each.partition_id, 1)),
            each.member,
            each.next_position - 1,
            each.processed_position,
            int(samples.total("holdfast_lag_records", partition=str(each.partition_id))),
            behind.get(each.partition_id),
        )
        for each in partitions
    ]  # fmt: skip


def _state(view: PartitionView, is_open: int) -> str:
    if not view.is_reached:
        return "AWAY"
    return "UP" if is_open else "DOWN"


def _by_partition(samples: NumberSamples, name: str) -> dict[int, int]:
    return {
        int(labels["partition"]): int(value)
        for labels, value in samples.each(name)
        if labels.get("partition", "").isdecimal()
    }


def _disk(samples: NumberSamples) -> HealthNumbers:
    whole = samples.total
    return HealthNumbers(
        whole("holdfast_log_bytes"),
        whole("holdfast_state_bytes"),
        # processes of one node share a disk
        samples.highest("holdfast_disk_free_bytes") or 0.0,
        samples.highest("holdfast_disk_size_bytes") or 0.0,
        int(whole("holdfast_snapshots_total")),
        int(whole("holdfast_snapshots_failed_total")),
        int(whole("holdfast_scrubs_total")),
        int(whole("holdfast_damage_found_total")),
        int(whole("holdfast_damaged_files")),
        samples.highest("holdfast_pipeline_lag_seconds"),
    )


async def back_up(ask: PageAsk) -> PageReply:
    """Begins a backup; the page tells how far it is."""
    await ask.api.node.back_up(ask.wanted("target"))
    return ask.go(_HOME, "The backup has begun.")


PAGES = (
    ConsolePage(_HOME, "Health", show, group="Node"),
    ConsolePage(f"{_HOME}/backup", "Back up", back_up, _UPDATE, method="POST"),
)
