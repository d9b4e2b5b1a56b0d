"""The demo's course: submit, kill, go on, repair, resolve; orders; a repair; a site; and compare.

Beside it, from its beginning on, a pipeline keeps tables of what happens.
"""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.cli.demo.audit import Audit
from holdfast.cli.demo.children import Child, holdfast, start_node
from holdfast.cli.demo.content_story import ContentStory
from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.order_story import OrderStory
from holdfast.cli.demo.orders import Orders
from holdfast.cli.demo.repair_story import RepairStory
from holdfast.cli.demo.stage import Stage
from holdfast.cli.demo.tables_story import TablesStory
from holdfast.cli.demo.tasks import CARRIER, LEDGER
from holdfast.cli.demo.verdict import Submitted, Verdict, reach_verdict
from holdfast.cli.demo.workload import Workload
from holdfast.client.patience import patient
from holdfast.client.remote import RemoteApi
from holdfast.errors import DeadlineExceeded
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import IncidentQuery, NewTask

_LOOK_SECONDS = 0.05  # how often the journal is looked at
_KILL_AT = 0.4  # of the work
_STALL_SECONDS = 60  # no step in this time: something is stuck
_LEASE = "3s"  # how soon others get what a killed worker held
_CONCURRENCY = "8"
_PREFETCH_MAX = 192  # work at hand for a tenth of a second: few requests, and much to lose
_PREFETCH_SHARE = 40  # but never more than this part of all, so that both workers have some


class Pictures(NamedTuple):
    """Where the demo draws to."""

    order: Path  # an order that is stuck
    report: Path


class Story:
    """One run of the demo in a folder."""

    def __init__(self, folder: Path, pictures: Pictures, workload: Workload, stage: Stage) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._workload = workload
        self._stage = stage
        self._ledger = Ledger(folder / "ledger.sqlite")
        self._orders = OrderStory(folder, pictures.order, Orders(workload.tasks), stage)
        self._repair = RepairStory(folder, workload.tasks, stage)
        self._content = ContentStory(folder, stage)
        self._tables = TablesStory(folder, pictures.report, stage)
        self._submitted = Submitted()
        self._workers: dict[str, Child] = {}
        self._url = ""
        self._began = time.monotonic()

    async def run(self) -> Verdict:
        """From a fresh folder to the verdict; whatever happens, no process is left behind."""
        self._keep_the_whole_log()
        node, started = start_node(self._folder)
        self._url = started.url
        self._stage.say(f"node at {started.url} with {started.partitions} partitions")
        try:
            seconds = await self._act(node)
        except BaseException:
            await self._tables.end()
            raise
        finally:
            await self._stop_workers()
            await asyncio.to_thread(node.stop)
        self._stage.say("workers and node stopped; reading the journal from its first record")
        return await self._compare(seconds)

    async def _act(self, node: Child) -> float:
        """All acts, with the tables filling beside them; returns how long the tasks took."""
        api = patient(RemoteApi(self._url), _STALL_SECONDS)
        try:
            await self._tables.begin()
            await self._start_workers("worker-1", "worker-2")
            self._began = time.monotonic()
            await self._submit_and_watch(api, node)
            seconds = time.monotonic() - self._began
            self._stage.say(
                f"[green]{self._workload.tasks:,} tasks completed in {seconds:.1f} s[/]"
            )
            await self._stop_workers()
            await self._tables.until_level()
            await self._orders.run(api, node, self._url, self._tables.until_open)
            if self._tables.are_kept:  # what an operation is to work on is selected from them
                await self._repair.run(api, node, self._url, self._tables.until_open)
            await self._content.run(api, node, self._url)
        finally:
            await api.close()
        return seconds

    async def _compare(self, seconds: float) -> Verdict:
        """Reads the journal while the tables get what they have not got yet."""
        self._tables.node_ended()
        try:
            verdict, _ = await asyncio.gather(
                asyncio.to_thread(self._verdict, seconds), self._tables.finish()
            )
        finally:
            await self._tables.end()
        return msgspec.structs.replace(verdict, tables=self._tables.verdict(verdict))

    def _verdict(self, seconds: float) -> Verdict:
        verdict = reach_verdict(
            self._workload, self._submitted, self._data, self._ledger, seconds,
            self._orders.verdict(), self._repair.verdict(),
        )  # fmt: skip
        return msgspec.structs.replace(verdict, content=self._content.verdict(self._data))

    async def _stop_workers(self) -> None:
        workers = [self._workers.popitem()[1] for _ in range(len(self._workers))]
        await asyncio.gather(*(asyncio.to_thread(worker.stop) for worker in workers))

    async def _submit_and_watch(self, api: Api, node: Child) -> None:
        """Both at once; when one of them fails, so does the other."""
        both = [asyncio.create_task(self._submit(api)), asyncio.create_task(self._watch(api, node))]
        try:
            await asyncio.gather(*both)
        finally:
            for task in both:
                task.cancel()

    def _keep_the_whole_log(self) -> None:
        """A reader at position 0: the node must not cut off what the verdict is about to read."""
        readers = self._data / "readers"
        readers.mkdir(parents=True)
        (readers / "demo.json").write_bytes(msgspec.json.encode({}))

    async def _start_workers(self, *names: str) -> None:
        prefetch = min(_PREFETCH_MAX, self._workload.tasks // _PREFETCH_SHARE)
        environment = {"HOLDFAST_URL": self._url, LEDGER: str(self._folder / "ledger.sqlite")}
        for name in names:
            command = holdfast(
                "worker", "holdfast.cli.demo.tasks:app", "--name", name,
                "--lease", _LEASE, "--concurrency", _CONCURRENCY, "--prefetch", str(prefetch),
            )  # fmt: skip
            self._workers[name] = Child(self._folder, name, command, **environment)
        for name in names:
            await asyncio.to_thread(self._workers[name].first_line)
        self._stage.say(f"{' and '.join(names)} at work")

    # --- submitting ---------------------------------------------------------------------------

    async def _submit(self, api: Api) -> None:
        for batch in self._workload.batches():
            await self._submit_batch(api, batch)
        self._stage.say(
            f"{self._submitted.created:,} tasks of {self._workload.orders:,} orders submitted;"
            f" {self._submitted.refused:,} charges twice, on purpose"
        )

    async def _submit_batch(self, api: Api, batch: list[NewTask]) -> None:
        receipts = await api.tasks.submit(batch)
        created = sum(receipt.created for receipt in receipts)
        self._submitted.created += created
        self._submitted.refused += len(receipts) - created

    # --- watching -----------------------------------------------------------------------------

    async def _watch(self, api: Api, node: Child) -> None:
        """Follows the journal to the end of the last task, and does what the story asks for."""
        audit, tasks, stuck = Audit(self._data), self._workload.tasks, self._workload.stuck
        last_step, last_records = time.monotonic(), 0
        is_killed = is_repaired = False
        while (completed := len(audit.completed)) < tasks:
            await asyncio.sleep(_LOOK_SECONDS)
            audit.read_on()
            self._stage.completed(audit.completed.total(), time.monotonic() - self._began)
            if not is_killed and completed >= tasks * _KILL_AT:
                is_killed = await self._kill_worker(audit)
            if not is_repaired and stuck and audit.incidents_raised == stuck:
                is_repaired = await self._resume(api, completed)
            for child in (node, *self._workers.values()):
                child.check()
            if audit.records > last_records:
                last_step, last_records = time.monotonic(), audit.records
            elif time.monotonic() - last_step > _STALL_SECONDS:
                raise DeadlineExceeded(
                    f"Expected {tasks} tasks to end, but nothing moves at {completed};"
                    f" see the logs in {self._folder}"
                )

    async def _kill_worker(self, audit: Audit) -> bool:
        """Kills a worker that has work in its hands; False if it has none just now."""
        child = self._workers["worker-1"]
        child.pause()
        await asyncio.sleep(_LOOK_SECONDS)  # what it had told just before is still being written
        audit.read_on()
        if not audit.held_by(child.name):
            child.go_on()
            return False
        child.kill()
        del self._workers[child.name]
        self._stage.say(
            f"[bold red]killed worker-1[/] (process {child.pid}, SIGKILL) after"
            f" {len(audit.completed):,} tasks, with {audit.held_by('worker-1'):,} in its hands;"
            f" others get them when its lease of {_LEASE} is over"
        )
        await self._start_workers("worker-3")
        return True

    async def _resume(self, api: Api, completed: int) -> bool:
        """Waits until only the incidents are left, as a person would find them; then resolves."""
        if completed + self._workload.stuck < self._workload.tasks:
            return False
        incidents = (await api.incidents.page(IncidentQuery())).items
        *_, error = incidents[0].error.splitlines()
        self._stage.say(f"{len(incidents)} incidents are open: {error.rpartition('.')[2]}")
        self._ledger.repair(CARRIER)
        for incident in incidents:
            await api.incidents.resolve(incident.incident_key, 3)
        self._stage.say("the carrier works again and the incidents are resolved: tried again")
        return True
