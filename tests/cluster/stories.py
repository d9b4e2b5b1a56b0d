"""What programs do with a cluster while members are killed and drained: a story for each kind.

Each begins with some work, goes on until the trouble is over, and then looks at what it has got.
"""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from camunda_orchestration_sdk import CamundaAsyncClient, WorkerConfig
from camunda_orchestration_sdk.errors import ServiceUnavailableError
from camunda_orchestration_sdk.models import (
    MessagePublicationRequest,
    ProcessCreationById,
)
from camunda_orchestration_sdk.models.process_instance_creation_instruction_base_variables import (
    ProcessInstanceCreationInstructionBaseVariables,
)

from holdfast import BusinessError, Holdfast, Owned, Process, error, path
from holdfast.engine.jobs.values import JobState
from holdfast.gateway.distribution.shapes import DistributionQuery
from holdfast.gateway.tasks.shapes import BackoffKind, RetryBackoff, TaskQuery
from holdfast.gateway.transactions.shapes import TransactionQuery
from holdfast.model.bpmn import write_bpmn
from holdfast.pipeline.log import Log, entries_between, open_log

WAIT = 40.0  # seconds until a story gives up; none of them takes that long
PACE = 0.1  # seconds between two steps of a story
TICK_MS = 200

T = TypeVar("T")


class Course:
    """Where a story takes place, and how long."""

    def __init__(self, urls: list[str], steady: str, folder: Path) -> None:
        self.urls = urls
        self.steady = steady  # a member that goes on, for clients that know one address only
        self.folder = folder
        self.began = threading.Event()
        self.over: threading.Event = threading.Event()
        self._pause = threading.Event()

    def turns(self) -> Iterator[int]:
        """Numbers, at a pace, until the trouble is over."""
        for number in itertools.count():
            yield number
            if number == 1:
                self.began.set()
            if self.over.is_set():
                return
            self._pause.wait(PACE)

    def until(self, condition: Callable[[], T]) -> T:
        """Asks until the answer is not empty."""
        for _ in range(round(WAIT / PACE)):
            if found := condition():
                return found
            self._pause.wait(PACE)
        raise AssertionError("it did not happen in time")

    @contextmanager
    def app(self, first: int = 0) -> Iterator[Holdfast]:
        """A program that knows all members, and asks one of them first."""
        urls = [*self.urls[first:], *self.urls[:first]]
        with Holdfast.connect(",".join(urls), patience=WAIT) as opened:
            yield opened


# --- tasks ------------------------------------------------------------------------------------


def tasks(course: Course) -> None:
    """Retries, incidents, cancels and a schedule; two workers that ask other members first."""
    with course.app() as app, course.app(1) as near, course.app(2) as far:
        is_mended = threading.Event()
        failed: set[int] = set()

        def double(number: int) -> int:
            if number % 5 == 3 and number not in failed:
                failed.add(number)
                raise ValueError("not yet")
            return 2 * number

        def break_down(number: int) -> int:
            if not is_mended.is_set():
                raise ValueError("broken")
            return number

        task = app.task(name="double", backoff=RetryBackoff(BackoffKind.FIXED, 100))(double)
        stuck = app.task(name="break_down", retries=0)(break_down)
        tick = app.task(name="tick")(lambda: None)
        later = app.task(name="later")(lambda: None)
        workers = []
        for other in (near, far):
            for each in (task, stuck):
                other.tasks[each.name] = each
            workers.append(other.worker(concurrency=2, lease=3).start())
        app.schedule("ticking", tick.bind(), every=timedelta(milliseconds=TICK_MS), catch_up="all")
        handles, breaking, waiting = {}, {}, {}
        for number in course.turns():
            handles[number] = task.submit(number, key=f"double {number}")
            if number % 8 == 0:
                breaking[number] = stuck.submit(number)
                waiting[number] = later.submit(delay=3_600)
        for handle in waiting.values():
            handle.cancel()
        course.until(lambda: len(app.incidents("break_down")) == len(breaking))
        is_mended.set()
        for incident in app.incidents("break_down", limit=1_000):
            app.retry_incident(incident.incident_key, 1)
        assert {n: each.result(WAIT) for n, each in handles.items()} == {n: 2 * n for n in handles}
        assert {n: each.result(WAIT) for n, each in breaking.items()} == {n: n for n in breaking}
        assert {each.view().state for each in waiting.values()} == {JobState.CANCELED}
        again = [task.submit(number, key=f"double {number}") for number in handles]
        assert [each.key for each in again] == [each.key for each in handles.values()]
        _check_ticks(app)
        for worker in workers:
            worker.stop()


def _check_ticks(app: Holdfast) -> None:
    """Every due time has fired once: tasks that nobody takes, one for each."""
    [before] = app.portal.call(app.api.schedules.all())
    app.unschedule("ticking")
    found = app.portal.call(app.api.tasks.page(TaskQuery("tick", limit=1_000))).items
    assert before.next_due is not None
    last_ms = max(each.created.timestamp() for each in found if each.created) * 1_000
    later = (last_ms - before.next_due.timestamp() * 1_000) // TICK_MS + 1
    assert before.fired <= len(found) <= before.fired + max(later, 0)


# --- processes --------------------------------------------------------------------------------

PACKING = Process("packing").task("pack")
SALE = (
    Process("sale")
    .task("pay", retries=0, on=[error("DECLINED", path().end("refused"))])
    .wait("paid", message="payment", key="sale")
    .pause("cool", "PT0.2S")
    .call("packed", process="packing")
)
VISIT = Process("visit").wait("old", message="come", key="visit")
NEXT_VISIT = (
    Process("visit")
    .wait("new", message="come", key="visit")
    .compute("note", '"moved"', result="note")
)


def processes(course: Course) -> None:
    """Messages, timers, calls, errors, incidents and migrations."""
    with course.app(1) as app:
        is_mended = threading.Event()

        def pay(number: int) -> dict[str, int]:
            if number % 7 == 5:
                raise BusinessError("DECLINED")
            if number % 7 == 6 and not is_mended.is_set():
                raise ValueError("the bank is closed")
            return {"paid": number}

        app.task(name="pay")(pay)
        app.task(name="pack")(lambda: {"packed": True})
        app.deploy(PACKING, SALE, VISIT)
        worker = app.worker(lease=3).start()
        sales, visits = {}, {}
        for number in course.turns():
            sale = {"number": number, "sale": f"sale {number}"}
            sales[number] = app.start("sale", sale, key=f"sale {number}")
            app.publish("payment", f"sale {number}", ttl=3_600)
            if number % 4 == 0:
                visits[number] = app.start("visit", {"visit": f"visit {number}"})
        stuck = [number for number in sales if number % 7 == 6]
        course.until(lambda: len(app.incidents(process="sale")) == len(stuck))
        is_mended.set()
        for incident in app.incidents(process="sale", limit=1_000):
            app.retry_incident(incident.incident_key, 1)
        [newer] = app.deploy(NEXT_VISIT)
        for number, visit in visits.items():
            visit.migrate(newer, {"old": "new"})
            app.publish("come", f"visit {number}", ttl=3_600)
        for number, sale in sales.items():
            done = sale.result(WAIT)
            assert ("packed" in done) == (number % 7 != 5), done
        assert {each.result(WAIT)["note"] for each in visits.values()} == {"moved"}
        assert app.instances("sale") == app.instances("visit") == []
        worker.stop()


# --- distribution -----------------------------------------------------------------------------


def distribution(course: Course) -> None:
    """Deployments reach all partitions, also if a member is away while they are made."""
    with course.app(2) as app:
        names: list[str] = []
        for number in course.turns():
            if number % 4 == 0:
                names.append(f"rollout{len(names)}")
                app.deploy(Process(names[-1]).wait("go", message="go", key="name"))
        course.until(
            lambda: not app.portal.call(app.api.distributions.page(DistributionQuery())).items
        )
        for name in names:
            keyed = [app.start(name, {"name": f"{name} {n}"}, key=f"{name} {n}") for n in range(8)]
            assert len({int(each.key) >> 51 for each in keyed}) > 1  # on several partitions
            assert [each.version for each in app.definitions(name)] == [1]


# --- transactions -----------------------------------------------------------------------------


def transactions(course: Course) -> None:
    """All of a transaction or nothing, over partitions of several members."""
    with course.app() as app:
        step = app.task(name="step")(lambda number: None)
        made: dict[int, list[str]] = {}
        for number in course.turns():
            with app.transaction(id=f"both {number}", timeout=WAIT) as t:
                both = [t.submit(step, number, key=f"step {number} {n}") for n in range(3)]
            made[number] = [each.key for each in both]
        for number, keys in made.items():
            again = [step.submit(number, key=f"step {number} {n}").key for n in range(3)]
            assert again == keys
        course.until(
            lambda: not app.portal.call(app.api.transactions.page(TransactionQuery())).items
        )


# --- content ----------------------------------------------------------------------------------


def content(course: Course) -> None:
    """A publisher and two subscribers, with files that go through the shared store."""
    site = course.folder / "site"
    site.mkdir()
    with course.app() as app, course.app(1) as one, course.app(2) as other:
        publisher = app.publisher("site", site)
        stores = [
            each.subscriber(name, of="site", into=course.folder / f"{name}.sqlite")
            for name, each in (("one", one), ("other", other))
        ]
        count = 0
        for number in course.turns():
            if number % 4 == 0:
                count += 1
                (site / "page.html").write_text(f"{count}")
                (site / f"film{count % 3}.bin").write_bytes(count.to_bytes(4) * 60_000)
                assert publisher.add(package_id=f"site {count}").number == count
        for store in stores:
            store.wait_until_idle(WAIT)
            assert store.imported == count
            for file in site.iterdir():
                data = store.repository.get(f"/{file.name}").properties["data"]
                assert b"".join(store.repository.read(data)) == file.read_bytes()

        def told() -> list[int]:
            found = [each.number for each in publisher.events()]
            return found if len(found) >= count else []

        assert course.until(told) == list(range(1, count + 1))  # none lost, none twice


# --- groups -----------------------------------------------------------------------------------


def groups(course: Course) -> None:
    """Three programs share partitions; what they have committed is never lost."""
    tokens = [f"p{number}" for number in range(9)]
    lock = threading.Lock()
    running: dict[tuple[str, int], str] = {}
    reached = dict.fromkeys(tokens, 0)  # what is durable
    wrong: list[str] = []

    def count(name: str, owned: Owned) -> None:
        place, offset = (owned.token, owned.epoch), owned.offset or 0
        with lock:
            if place in running:
                wrong.append(f"{place} has two owners: {name} and {running[place]}")
            if offset < reached[owned.token]:
                wrong.append(f"{owned} goes back from {reached[owned.token]}")
            running[place] = name
        try:
            while not owned.wait(PACE):
                offset += 1
                owned.commit(offset)
                owned.flush(WAIT)
                with lock:
                    reached[owned.token] = max(reached[owned.token], offset)
        finally:
            with lock:
                running.pop(place, None)

    with ExitStack() as stack:
        opened = [
            stack.enter_context(
                stack.enter_context(course.app(first)).group(
                    "shared", partitions=tokens, run=partial(count, name), member=name
                )
            )
            for first, name in enumerate("abc")
        ]
        for _ in course.turns():
            pass
        course.until(lambda: [len(each.owned) for each in opened] == [3, 3, 3])
        before = dict(reached)
        course.until(lambda: all(reached[token] > before[token] for token in tokens))
        assert not wrong and not any(each.alarms for each in opened), wrong


# --- what the pipeline reads with ---------------------------------------------------------------

Places = dict[tuple[int, int], bytes]  # payloads by partition and offset


def reading(course: Course) -> None:
    """A reader of the log goes on at other members, and all of them give out the same log."""
    found: Places = {}
    log = open_log(",".join(course.urls))
    ends: dict[int, int] = {}
    for _ in course.turns():
        later = {partition: each.next for partition, each in log.bounds().items()}
        assert all(later[each] >= end for each, end in ends.items())
        found |= _read(log, ends, later)
        ends = later
    for url in course.urls:
        one = open_log(url)
        assert _read(one, {}, ends) == found
        course.until(lambda it=one: _has_all(it.as_of(None).ends, ends))
        one.close()
    log.close()


def _has_all(cut: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return all(cut.get(each, 0) >= end for each, end in ends.items())


def _read(log: Log, starts: dict[int, int], ends: dict[int, int]) -> Places:
    return {
        (partition, entry.offset): entry.payload
        for partition, end in ends.items()
        for piece in entries_between(log, partition, starts.get(partition, 0), end)
        for entry in piece
    }


# --- the public client of the REST API ----------------------------------------------------------

ORDER = Process("order").task("charge").wait("paid", message="payment", key="orderId")


def sdk(course: Course) -> None:
    """A client that knows one member only."""
    asyncio.run(_sdk(course))


async def _sdk(course: Course) -> None:
    file = course.folder / "order.bpmn"
    file.write_bytes(write_bpmn(ORDER.definition()))
    charged: Counter[str] = Counter()

    async def charge(job: Any) -> dict[str, Any]:
        charged[job.variables.to_dict()["orderId"]] += 1
        return {"charged": True}

    async with CamundaAsyncClient(
        configuration={"CAMUNDA_REST_ADDRESS": course.steady, "CAMUNDA_SDK_LOG_LEVEL": "silent"}
    ) as client:
        await _known(partial(client.deploy_resources_from_files, [str(file)]))
        config = WorkerConfig(
            job_type="charge", job_timeout_milliseconds=3_000, with_lease=True,
            request_timeout_milliseconds=1_000,
        )  # fmt: skip
        client.create_job_worker(config=config, callback=charge)
        working = asyncio.create_task(client.run_workers())
        keys: dict[str, str] = {}
        turns = course.turns()
        while (number := await asyncio.to_thread(next, turns, None)) is not None:
            order, key = await _ordered(client, number)
            keys[order] = key
            paid = MessagePublicationRequest(
                name="payment", correlation_key=order, time_to_live=3_600_000
            )
            await _known(partial(client.publish_message, data=paid))
        with course.app() as app:
            for key in keys.values():
                done = await asyncio.to_thread(app.instance(key).result, WAIT)
                assert done["charged"] is True
        working.cancel()
    assert keys.keys() <= charged.keys()


async def _ordered(client: CamundaAsyncClient, number: int) -> tuple[str, str]:
    """Starts an instance for an order; the order and the instance's key.

    503 says that it may or may not have been started. Then another order is tried: two instances of
    one order would wait for the same message.
    """
    attempts = itertools.count()
    while True:
        order = f"{number}-{next(attempts)}"
        given = ProcessInstanceCreationInstructionBaseVariables.from_dict({"orderId": order})
        asked = ProcessCreationById(process_definition_id="order", variables=given)  # type: ignore[arg-type]
        try:
            made = await client.create_process_instance(data=asked)
        except ServiceUnavailableError:
            await asyncio.sleep(PACE)
        else:
            return order, str(made.process_instance_key)


async def _known(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What is answered; 503 says that it may or may not have been done: it is asked again."""
    while True:
        try:
            return await ask()
        except ServiceUnavailableError:
            await asyncio.sleep(PACE)
