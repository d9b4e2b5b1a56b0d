"""Members that are lost, paused and started, over a log that answers late or not at all."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random

from tests.brokered.in_process import PARTITIONS, Members

from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import HoldfastError
from holdfast.journal.api import Append
from holdfast.journal.memory import Fate
from holdfast.records import RecordKind, ValueType

SEED = int(os.environ.get("HOLDFAST_SEED", "0")) or int.from_bytes(os.urandom(4))
UNKNOWN = [Fate.KEPT, Fate.LATE, Fate.LOST]
ROUNDS = int(os.environ.get("HOLDFAST_KILLS", "6"))


class Load:
    """Submits through any member until it is acknowledged, as a client does."""

    def __init__(self, members: Members, random: Random) -> None:
        self.acknowledged: list[str] = []
        self._members = members
        self._random = random
        self._stop = False

    async def run(self, name: str) -> None:
        number = 0
        while not self._stop:
            key, partition = f"{name}-{number}", 1 + number % PARTITIONS
            number += 1
            new = NewJob("mail", b"{}", idempotency_key=key, window_ms=3_600_000)
            await self._submit(partition, Command(ValueType.JOB, JobIntent.CREATE, 0, new))
            self.acknowledged.append(key)

    async def _submit(self, partition: int, command: Command) -> None:
        while True:
            member = self._random.choice(list(self._members.members.values()))
            try:
                async with asyncio.timeout(5):
                    await member.place.routed.submit(partition, [command])
                return
            except (HoldfastError, TimeoutError):
                await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._stop = True


async def created(members: Members) -> Counter[str]:
    """How often each job was created, by its key."""
    found: Counter[str] = Counter()
    for partition in range(1, PARTITIONS + 1):
        entries = await members.kept.read(TOPIC, partition, 0, 1 << 30)
        for record in DISPATCH.codec.decode_many([each.payload for each in entries]):
            kind = (record.kind, record.value_type, record.intent)
            if kind == (RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED):
                found[record.value.idempotency_key] += 1
    return found


def test_nothing_is_lost_or_done_twice_though_members_go_and_appends_are_unknown(
    tmp_path: Path,
) -> None:
    print(f"HOLDFAST_SEED={SEED}")
    random = Random(SEED)

    def fate(_: Append) -> Fate:
        return random.choice(UNKNOWN) if random.random() < 0.02 else Fate.DURABLE

    async def story() -> None:
        members = Members(tmp_path)
        await members.start("a", "b", "c")
        members.kept.fate = fate
        load = Load(members, random)
        running = [asyncio.create_task(load.run(f"client{each}")) for each in range(4)]
        try:
            for number in range(ROUNDS):
                before = len(load.acknowledged)
                victim = random.choice(sorted(members.members))
                await members.drop(victim)
                await members.start(f"{victim[0]}{number}")
                await members.until(lambda before=before: len(load.acknowledged) > before + 50)
        finally:
            load.stop()
            await asyncio.wait(running, timeout=10)
        members.kept.fate = None
        found = await created(members)
        assert {e: found[e] for e in load.acknowledged if found[e] != 1} == {}
        assert not [each for m in members.members.values() for each in m.alarms + m.group.alarms]
        await members.close()

    asyncio.run(story())
