"""A data folder with everything in it, and what becomes of a node when one bit of it flips."""

import asyncio
import shutil
import time
from collections import Counter
from pathlib import Path
from random import Random

import msgspec

from holdfast.config import Config
from holdfast.errors import Code, DataLoss, HoldfastError, NotFound
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.node import LocalNode

CONFIG = Config(
    partitions=2, segment_bytes=SEGMENT_BYTES_MIN, snapshot_interval_ms=10**9,
    ended_kept_max=0,  # no more of the log is kept than has to be
    log_level="critical",
)  # fmt: skip
TEXT = Random(0).randbytes(400).hex().encode()
TASKS = 100  # a batch
BATCHES = 10
# Not worth a flip: RocksDB's own logs, and files of its options that nobody reads again.
_IDLE = ("LOG", "LOCK", "IDENTITY", "OPTIONS", ".lock")
PASSING = frozenset({Code.UNAVAILABLE, Code.DATA_LOSS})  # may be answered while it is rebuilt
DEADLINE_SECONDS = 60


class Truth(msgspec.Struct):
    """What was acknowledged: the payload of every task that waits, and those that ended."""

    waiting: dict[str, bytes] = {}
    ended: set[str] = set()


async def make_folder(folder: Path) -> Truth:
    """Batches of tasks over several segments and snapshots, with the log cut behind them."""
    truth = Truth()
    node = await LocalNode.open(folder, CONFIG)
    for batch in range(BATCHES):
        await work(node, truth, batch)
        if batch in (2, 5, 8):
            await node.take_snapshot()
    await node.close()
    assert (folder / "state" / "snapshots" / "3" / "manifest.json").exists()
    assert not (folder / "journal" / "records" / f"{1:020}.segment").exists(), "the log was cut"
    return truth


async def work(node: LocalNode, truth: Truth, batch: int) -> None:
    """Some more tasks, of which some are done."""
    payloads = [
        b'{"batch":%d,"task":%d,"text":"%s"}' % (batch, n, TEXT[n : n + 300]) for n in range(TASKS)
    ]
    receipts = await node.gateway.tasks.submit(
        [NewTask("work", msgspec.Raw(each)) for each in payloads]
    )
    truth.waiting |= {each.task_key: data for each, data in zip(receipts, payloads, strict=True)}
    jobs = await node.gateway.jobs.activate(ActivationRequest(["work"], jobs_max=10, wait_ms=0))
    await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
    for job in jobs:
        del truth.waiting[job.job_key]
        truth.ended.add(job.job_key)


def flippable(folder: Path) -> list[Path]:
    """The files of a folder in which a bit can flip."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size and not path.name.startswith(_IDLE)
    ]


def flip_somewhere(folder: Path, random: Random, kind: str | None = None) -> tuple[Path, int]:
    """Flips one bit: any kind of file is as likely as any other, and then any bit of it."""
    files = flippable(folder)
    kinds = sorted({kind_of(path, folder) for path in files})
    kind = kind or random.choice(kinds)
    path = random.choice([each for each in files if kind_of(each, folder) == kind])
    size_bytes = path.stat().st_size
    position = random.randrange(size_bytes)
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))
    return path, position


def kind_of(path: Path, folder: Path) -> str:
    """Where a file is and what it is for."""
    parts = path.relative_to(folder).parts
    room = "snapshot" if "snapshots" in parts else parts[1] if parts[0] == "state" else "journal"
    return f"{room} {path.suffix or path.name.partition('-')[0]}"


async def persistently(ask, deadline: float):
    """An answer, asked for again while the state is being rebuilt."""
    while True:
        try:
            return await ask()
        except NotFound:
            raise
        except HoldfastError as error:
            if error.code not in PASSING or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.01)


async def check_all(node: LocalNode, truth: Truth) -> None:
    """Every acknowledged task can be read, and is right."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    for key, payload in truth.waiting.items():
        task = await persistently(lambda key=key: node.gateway.tasks.get(key), deadline)
        assert bytes(task.payload) == payload, key
    for key in truth.ended:
        task = await persistently(lambda key=key: node.gateway.tasks.get(key), deadline)
        assert task.state == "COMPLETED", key


async def check_what_health_says(node: LocalNode, truth: Truth) -> None:
    """Once the node says that all work is readable, without having been asked for any, it is."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (health := await node.gateway.node.health()).status not in ("UP", "DEGRADED"):
        assert time.monotonic() < deadline, health
        await asyncio.sleep(0.005)
    rebuilds = node.metrics.storage.rebuilds
    await check_all(node, truth)
    assert node.metrics.storage.rebuilds == rebuilds, f"it was {health.status}, and was not whole"


async def start_after_flip(folder: Path, truth: Truth, *, reads_at_once: bool = True) -> str:
    """What becomes of a node that is started on the folder: healed, or refused by name."""
    try:
        node = await LocalNode.open(folder, CONFIG)
    except DataLoss as error:
        assert str(folder) in error.message, f"it names what is damaged: {error.message}"
        return "refused"
    try:
        check = check_all if reads_at_once else check_what_health_says
        await asyncio.wait_for(check(node, truth), DEADLINE_SECONDS)
        await asyncio.wait_for(node.upkeep.scrubbed.wait(), DEADLINE_SECONDS)
        if (await node.gateway.node.health()).status == "DEGRADED":
            truth = Truth(dict(truth.waiting), set(truth.ended))
            await work_on(node, truth)
        await until_healthy(node)
        await check_all(node, truth)
        return "rebuilt" if node.metrics.storage.rebuilds else "healed"
    finally:
        await node.close()


async def flip_while_running(folder: Path, truth: Truth, random: Random) -> tuple[str, str]:
    """Flips a bit under a node; what became of it, and of the next start."""
    truth = Truth(dict(truth.waiting), set(truth.ended))
    node = await LocalNode.open(folder, CONFIG)
    try:
        await asyncio.wait_for(node.upkeep.scrubbed.wait(), DEADLINE_SECONDS)
        path, position = flip_somewhere(folder, random)
        place = f"{kind_of(path, folder)} at byte {position}"
        try:
            await check_all(node, truth)
            await asyncio.wait_for(node.upkeep.scrub(), DEADLINE_SECONDS)
            await work_on(node, truth)
            await until_healthy(node)
            await check_all(node, truth)
        except BaseException as error:
            raise AssertionError(place) from error
        rebuilt = node.metrics.storage.rebuilds
    finally:
        await node.close()
    return (
        place,
        f"{'rebuilt' if rebuilt else 'healed'}, then {await start_after_flip(folder, truth)}",
    )


async def work_on(node: LocalNode, truth: Truth) -> None:
    """The end of the log cannot be cut; it is when there is more behind it."""
    for batch in range(BATCHES, BATCHES + 3):
        deadline = time.monotonic() + DEADLINE_SECONDS
        await persistently(lambda batch=batch: work(node, truth, batch), deadline)
    await asyncio.wait_for(node.upkeep.scrub(), DEADLINE_SECONDS)


async def until_healthy(node: LocalNode) -> None:
    """Segments that were given up are removed beside the node's work."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (health := await node.gateway.node.health()).status != "UP":
        assert time.monotonic() < deadline, health
        await asyncio.sleep(0.02)


def flips(
    master: Path, truth: Truth, scratch: Path, seed: int, count: int, *, running: bool
) -> Counter[str]:
    """Flips one bit in a copy of a folder, so many times; outcomes by the kind of file."""
    outcomes: Counter[str] = Counter()
    for number in range(count):
        random = Random(f"{seed}/{number}")
        folder = scratch / f"flipped-{number}"
        shutil.copytree(master, folder)
        try:
            if running:
                place, outcome = asyncio.run(flip_while_running(folder, truth, random))
            else:
                path, position = flip_somewhere(folder, random)
                place = f"{kind_of(path, folder)} at byte {position}"
                at_once = number % 2 == 0
                outcome = asyncio.run(start_after_flip(folder, truth, reads_at_once=at_once))
        except BaseException as error:
            raise AssertionError(f"seed {seed}, flip {number} in {folder}") from error
        outcomes[f"{place.partition(' at byte')[0]}: {outcome}"] += 1
        shutil.rmtree(folder)
    return outcomes
