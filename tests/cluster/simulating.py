"""Whole members of a cluster under every fault, in virtual time and by a seed, with work to do.

    python -m tests.cluster.simulating 17          one seed, with what happens
    python -m tests.cluster.simulating 0 2000      many, quietly

Clients and workers ask any member, while machines, disks, the network and etcd fail. At the end
all faults stop: everything must work again, every answer that was given must be true, and every
member must have the same.
"""

import asyncio
import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.cluster.node_checks import CutsChecker, EffectChecker
from tests.cluster.simulated import PARTITIONS, SimulatedCluster, run_machines
from tests.cluster.simulated_faults import TICK_S, Faults
from tests.cluster.simulated_load import Load
from tests.journal.cluster.checking import (
    AppendChecker,
    ChainChecker,
    LogChecker,
    Violation,
)
from tests.journal.cluster.simulating import JumpingClock

from holdfast.cluster.member import ClusterMember
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, Unknown
from holdfast.gateway.processes.shapes import ProcessInstanceQuery
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import TaskQuery
from holdfast.journal import Append, Appended, Refused
from holdfast.journal.cluster.messages import Appending, Told
from holdfast.limits import PAGE_ITEMS_MAX
from holdfast.sequence.api import LogKey
from holdfast.testing import VirtualClock

TICKS = 100
CLIENTS, WORKERS = 3, 2
RECOVERY_S = 240.0  # of virtual time: leases, back-offs and transactions run out within it
LOST_S = 20.0  # after which all members have read all that somebody was told of
RUN_S_MAX = 600.0
_ENDED_TASKS = TaskQuery(scope=ListScope.ENDED, limit=PAGE_ITEMS_MAX)
_ENDED_INSTANCES = ProcessInstanceQuery(scope=ListScope.ENDED, limit=PAGE_ITEMS_MAX)
IDLE_S = 3.0
IDLE_TURNS_MAX = 400  # of the loop, a member and a second, when nothing happens


class Simulation:
    """One run."""

    def __init__(self, seed: int, clock: VirtualClock, *, ticks: int = TICKS) -> None:
        self.seed = seed
        self.clock = clock
        self.ticks = ticks
        self.story: list[str] = []
        self.dice = dice = Random(seed)
        self.logs, self.sent = LogChecker(), AppendChecker()
        self.chains, self.cuts = ChainChecker(), CutsChecker()
        self.cluster = cluster = SimulatedCluster(
            clock, seed, names="abcde"[: dice.choice((3, 3, 3, 4, 5))]
        )
        self.load = Load(cluster, dice)
        cluster.selector = self.load.items
        cluster.clocks = {name: JumpingClock(clock) for name in cluster.names}
        cluster.on_started.append(self._started)
        self.faults = Faults(cluster, dice, self.say, dice.choice((0.003, 0.01, 0.03)))
        self.failure: BaseException | None = None
        self._read: dict[str, dict[LogKey, int]] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        apply = cluster.etcd.apply

        def applied(keys: Any, write: Any) -> Any:
            written = apply(keys, write)
            self._check(lambda: self.chains.look(cluster.etcd.rows))
            return written

        cluster.etcd.apply = applied  # type: ignore[method-assign]

    def say(self, what: str) -> None:
        self.story.append(f"{self.clock.monotonic():8.3f} {what}")

    @property
    def keys(self) -> list[LogKey]:
        return [LogKey(TOPIC, partition) for partition in range(1, PARTITIONS + 1)]

    def _check(self, check: Any) -> None:
        """A violation ends the run, though it is found in the middle of a member's work."""
        try:
            check()
        except Violation as error:
            self.failure = self.failure or error

    # --- what is watched ----------------------------------------------------------------------

    def _started(self, name: str, member: ClusterMember) -> None:
        """Watches a member: what it sends, what it is told is appended, the cuts it follows."""
        journal, tell, append = member.journal, member.peers.tell, member.journal.append_many
        self._read[name] = {}

        def told(members: Sequence[str], message: Told) -> list[str]:
            if isinstance(message, Appending):
                for stretch in message.stretches:
                    self._check(lambda it=stretch: self.sent.sent(name, it))
                if any(each.entries for each in message.stretches):
                    self.faults.sending(name)
            return tell(members, message)

        async def appended(appends: Sequence[Append]) -> list[Any]:
            outcomes = await append(appends)
            for each, outcome in zip(appends, outcomes, strict=True):
                if isinstance(outcome, asyncio.Future):
                    outcome.add_done_callback(lambda done, it=each: self._appended(it, done))
            return outcomes

        member.peers.tell = told  # type: ignore[method-assign]
        journal.append_many = appended  # type: ignore[method-assign]

    def _appended(self, append: Append, done: "asyncio.Future[Any]") -> None:
        if done.cancelled() or isinstance(done.exception(), Unknown):
            return
        outcome = done.result()
        key, entries = LogKey(append.topic, append.partition), list(append.entries)
        if isinstance(outcome, Appended):
            self._check(lambda: self.logs.append_acknowledged(key, outcome.first, entries))
        elif isinstance(outcome, Refused):
            pass  # the same records may be appended again

    def _watch_cuts(self, name: str) -> None:
        cuts = self.cluster[name].cuts
        if "follow" in cuts.__dict__:
            return
        follow = cuts.follow

        def followed(cut: Any, at: Any) -> None:
            self._check(lambda: self.cuts.followed(name, cut, at))
            follow(cut, at)

        cuts.follow = followed  # type: ignore[method-assign]

    async def _read_logs(self, name: str) -> None:
        """Everything that is acknowledged, as this member has it."""
        journal, read = self.cluster[name].journal, self._read[name]
        with contextlib.suppress(HoldfastError):  # it tries again
            for key in self.keys:
                while entries := await journal.read(*key, read.get(key, 0)):
                    self._check(lambda it=entries, key=key: self.logs.read(key, it, name))
                    read[key] = entries[-1].offset + 1

    def _read_soon(self) -> None:
        for name in sorted(self.cluster.members):
            self._watch_cuts(name)
            reading = self._reading.get(name)
            if reading is None or reading.done():
                with self.cluster.machines.on(self.cluster.run_of(name)):
                    self._reading[name] = asyncio.ensure_future(self._read_logs(name))

    # --- a run --------------------------------------------------------------------------------

    async def run(self) -> None:
        cluster, load = self.cluster, self.load
        for name in cluster.names:
            await self.faults.start(name)
        await cluster.settled()
        await load.deploy()
        working = [asyncio.ensure_future(load.client(f"c{each}")) for each in range(CLIENTS)]
        working += [asyncio.ensure_future(load.work(f"w{each}")) for each in range(WORKERS)]
        self.faults.insist = lambda name, after: working.append(
            asyncio.ensure_future(load.insist(name, after))
        )
        for _ in range(self.ticks):
            await self.faults.happen()
            await self._tick(working)
        await self.faults.stop()
        await self._recover(working)
        await self._check_idle()
        await self._check_ended()
        self._check_all()

    async def _tick(self, working: "list[asyncio.Task[None]]") -> None:
        await asyncio.sleep(TICK_S)
        self._read_soon()
        for each in working:
            if each.done() and (error := each.exception()) is not None:
                raise error
        if self.failure is not None:
            raise self.failure
        self.cluster.owners()  # never two in one epoch

    async def _recover(self, working: "list[asyncio.Task[None]]") -> None:
        """Everything that was begun comes to its end."""
        loop, load = asyncio.get_running_loop(), self.load
        load.is_over = True
        healed_at = loop.time()
        while loop.time() < healed_at + RECOVERY_S:
            for _ in range(16):
                await self._tick(working)
            load.check_answered(healed_at)
            found = EffectChecker(self.logs, PARTITIONS)
            load.look_at(frozenset(found.ended))
            if loop.time() > healed_at + LOST_S:
                self._check_told(found)
            is_working = not all(each.done() for each in working)
            if not is_working and self.cluster.is_settled() and await load.nothing_pending():
                return
        raise Violation(
            f"it does not recover: {[each.get_coro() for each in working if not each.done()]},"
            f" settled {self.cluster.is_settled()},"
            f" left {sorted((load.tasks | load.instances | load.parked) - load._ended)}\n"
            f"{self.cluster.state()}"
        )

    async def _check_idle(self) -> None:
        """Nothing is left to do: nobody turns in a loop."""
        await asyncio.sleep(IDLE_S)
        machines = self.cluster.machines
        before = machines.turns
        await asyncio.sleep(IDLE_S)
        self.idle_turns = (machines.turns - before) / IDLE_S / len(self.cluster.members)
        if self.idle_turns > IDLE_TURNS_MAX:
            raise Violation(f"{self.idle_turns:.0f} turns of the loop a second and member")
        for _ in range(3):
            await self._tick([])

    async def _check_ended(self) -> None:
        """Every member lists all that has ended, whoever owned its partition at that time."""
        wanted = EffectChecker(self.logs, PARTITIONS).ended.keys()
        for name in sorted(self.cluster.members):
            tasks = await self.cluster.ask(name, lambda api: api.tasks.page(_ENDED_TASKS))
            others = await self.cluster.ask(name, lambda api: api.instances.page(_ENDED_INSTANCES))
            if tasks.ended_since or others.ended_since:
                raise Violation(f"{name} knows what ended since {tasks.ended_since} only")
            listed = {each.task_key for each in tasks.items}
            listed |= {each.process_instance_key for each in others.items}
            if not wanted <= listed:
                raise Violation(f"{name} does not list {sorted(wanted - listed)}, which ended")

    def _check_told(self, found: EffectChecker) -> None:
        """What somebody was told of is on the logs, once."""
        load = self.load
        found.once(found.made, load.tasks | load.instances | load.parked, "tasks and instances")
        found.once(found.named, load.named, "tasks that were asked for")

    def _check_all(self) -> None:
        load, cluster = self.load, self.cluster
        found = EffectChecker(self.logs, PARTITIONS)
        found.positions()
        self._check_told(found)
        found.once(found.created, load.keyed, "idempotency keys")
        found.once(found.ended, load.completed, "completions")
        found.once(found.published, load.paid, "messages")
        for name, (keys, result) in load.transactions.items():
            created = [each for each in keys if found.created[each]]
            if created != (keys if result.state == "COMMITTED" else []):
                raise Violation(f"transaction {name} is {result.state}, but made {created}")
            if result.state == "COMMITTED" and not found.made.keys() >= set(result.keys):
                raise Violation(f"transaction {name} told of {result.keys}, which are not there")
        found.transactions(self.cuts.cuts)
        for name, member in cluster.members.items():
            for key in self.keys:
                self.logs.all_read(key, self.logs.entries[key], 0, name)
                end = max(self.logs.entries[key]) + 1
                if self._read[name].get(key, 0) != end:
                    raise Violation(f"{name} reads {key} up to {self._read[name]}, not {end}")
            self.cuts.check_named(member.journal.marks())
        self._check_states(found)

    def _check_states(self, found: EffectChecker) -> None:
        """What is replayed is what is live, on owners and standbys."""
        for partition in range(1, PARTITIONS + 1):
            wanted = found.replayed(self.logs, partition, PARTITIONS)
            checked = 0
            for name, member in self.cluster.members.items():
                runner = member.node.runner
                is_owner = runner.epoch(partition) is not None
                standing = runner._lives.standing.get(partition)
                if not is_owner and standing is None:
                    continue
                checked += 1
                processor = runner.processor(partition) if is_owner else standing
                assert processor is not None
                if processor.state.dump() != wanted:
                    what = "owner" if is_owner else "standby"
                    raise Violation(f"the state of {partition} on {what} {name} is not its log's")
            if checked != min(3, len(self.cluster.members)):
                raise Violation(f"partition {partition} has {checked} states")


def simulate(seed: int, *, ticks: int = TICKS) -> Simulation:
    """Runs a seed; a violation names it."""
    clock = VirtualClock()
    ran: list[Simulation] = []

    async def whole() -> Simulation:
        ran.append(Simulation(seed, clock, ticks=ticks))
        async with asyncio.timeout(RUN_S_MAX):
            await ran[0].run()
            await ran[0].cluster.close()
        return ran[0]

    try:
        return run_machines(whole(), clock)
    except BaseException as error:
        story = "\n".join(ran[0].story[-60:]) if ran else ""
        error.add_note(f"{story}\nreplay with: python -m tests.cluster.simulating {seed}")
        raise


def main(first: int, end: int) -> bool:
    """Runs seeds, those after one that fails too; whether none has failed."""
    failed: list[int] = []
    for seed in range(first, end):
        try:
            found = simulate(seed)
        except Exception:
            failed.append(seed)
            print(f"seed {seed} failed\n{traceback.format_exc()}", flush=True)
            continue
        if end == first + 1:
            print("\n".join(found.story))
        load = found.load
        print(
            f"seed {seed}: {len(found.cluster.names)} members, {load.answers} answers,"
            f" {len(load.tasks)} tasks, {len(load.instances)} instances,"
            f" {len(load.transactions)} transactions, {len(load.batches)} batches,"
            f" {found.logs.acknowledged} entries, {len(found.cuts.cuts)} cuts,"
            f" {sum(found.faults.counts.values())} faults, {found.idle_turns:.0f} idle turns,"
            f" {found.clock.monotonic():.0f} s, trace {found.cluster.network.crc:08x}",
            flush=True,
        )
    if failed:
        print(f"{len(failed)} of {end - first} seeds failed: {failed}")
    return not failed


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:  # no step depends on it, unless there is a bug
        command = [sys.executable, "-m", "tests.cluster.simulating", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    first = int(sys.argv[1])
    sys.exit(0 if main(first, int(sys.argv[2]) if len(sys.argv) > 2 else first + 1) else 1)
