"""A small shop. With `web_shop.py`, its part for event loops, it uses all public calls of holdfast.

`python docs/examples/shop.py ./shop-data` runs it on an empty folder. Each function is about one
subject: read the one that you need. `mypy --strict` and pyright check all of it.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import holdfast as hf
from holdfast import Holdfast, Process, error, otherwise, over, path, when

WAIT_S = 30.0


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    name: str
    price: Decimal


class ShopCodec(hf.ValueCodec):
    """Sends fractions, and keeps card numbers unreadable: a real one encrypts."""

    def encode(self, value: Any) -> Any:
        return str(value) if isinstance(value, Fraction) else super().encode(value)

    def decode(self, value: Any, kind: type[Any]) -> Any:
        return Fraction(value) if kind is Fraction else super().decode(value, kind)

    def seal(self, name: str, data: bytes) -> bytes | None:
        return bytes(each ^ 0x5A for each in data) if name == "card" else None

    def unseal(self, data: bytes) -> bytes:
        return bytes(each ^ 0x5A for each in data)


# --- what is done when something is wrong -----------------------------------------------------

ADVICE: dict[type[hf.HoldfastError], str] = {
    hf.AlreadyExists: "it was done before: go on",
    hf.DataLoss: "restore the backup",
    hf.DeadlineExceeded: "ask again later",
    hf.Forbidden: "ask for the permission",
    hf.Internal: "report it",
    hf.InvalidArgument: "fix the call",
    hf.InvalidState: "look at the state first",
    hf.Moved: "ask the new owner",
    hf.NotFound: "check the key",
    hf.ResourceExhausted: "slow down",
    hf.TaskFailed: "look at the incident",
    hf.TransactionAborted: "see which operation was refused",
    hf.Unauthorized: "send a token",
    hf.Unavailable: "try again",
    hf.Unknown: "send it again with the same key",
}


def advice(problem: hf.HoldfastError) -> str:
    later = f" in {problem.retry_after_ms} ms" if problem.retry_after_ms else ""
    return ADVICE[type(problem)] + later


class Bookkeeping:
    """Middleware: counts what runs, and marks what is submitted."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def on_submit(self, new: hf.NewTask | hf.NewProcessInstance) -> None:
        new.headers["shop"] = "main street"

    def before(self, job: hf.JobDetails) -> None:
        self.ran.append(f"{job.type} for {job.headers.get('shop')}")


# --- tasks ------------------------------------------------------------------------------------


def reserve(items: list[Item]) -> dict[str, Decimal]:
    return {"net": sum((item.price for item in items), Decimal())}


def charge(card: str, total: Decimal) -> dict[str, str]:
    if not card:
        raise hf.BusinessError("DECLINED", "no card", total=total)
    return {"receipt": f"{total} from {card[-4:]}"}


def pack(item: Item) -> dict[str, str]:
    return {"box": f"box with {item.name}"}


def wrap(number: str) -> None: ...


def share(part: Fraction) -> Fraction:
    return part / 2


def fragile(attempts: int) -> str:
    if hf.current_job().attempt < attempts:
        raise hf.RetryLaterError(0.01)
    raise hf.GiveUpError("it is broken")


async def quote(items: list[Item]) -> Decimal:
    await asyncio.sleep(0)
    return sum((item.price for item in items), Decimal())


class Shop:
    """The tasks of the shop, in an app."""

    def __init__(self, app: Holdfast) -> None:
        fixed = hf.RetryBackoff(hf.BackoffKind.FIXED, base_ms=10)
        self.app = app
        self.reserve = app.task(reserve)
        self.charge: hf.Task[[str, Decimal], dict[str, str]] = app.task(charge)
        self.pack = app.task(pack)
        self.wrap = app.task(wrap)
        self.share: hf.FunctionTask[[Fraction], Fraction] = app.task(share)
        self.fragile = app.task(retries=5, backoff=fixed, timeout=60)(fragile)
        self.quote: hf.CoroutineTask[[list[Item]], Decimal] = app.task(quote)
        self.books = Bookkeeping()
        app.middleware(self.books)


# --- processes --------------------------------------------------------------------------------

INVOICE = Process("invoice").compute("sum", "total + 5", result="due").pause("rest", "PT0.01S")

ORDER = (
    Process("order", name="An order")
    .starts(message="ordered")
    .starts()
    .task("reserve")
    .compute("tax", "net * 1.2", result="total")
    .choose(when("total > 1000", path().fail("expensive", error="TOO_MUCH")), otherwise())
    .task(
        "charge",
        on=[
            error("DECLINED", path().terminate("declined")),
            hf.timeout("PT1H", path().go_to("charge")),
            hf.message("canceled", path().end("canceled"), key="number"),
            hf.every("R/PT10M", path().end("still-charging")),
        ],
    )
    .sub("packing", path().task("pack", each=over("items", collect="boxes", result="box")))
    .include(when("gift", path().task("wrap")), otherwise())
    .parallel(path().compute("one", "1", result="one"), path().compute("two", "2", result="two"))
    .race(hf.on_message("picked-up", "picked-up", "number"), hf.after("week", "P7D"), id="pick-up")
    .wait("paid", message="paid", key="number")
    .call("bill", process="invoice")
    .end("done")
)


def order(number: str, card: str = "4711") -> dict[str, Any]:
    items = [Item("lamp", Decimal("9.90"))]
    return {"number": number, "card": card, "items": items, "gift": True, "total": 0}


# --- the clerk: plain calls -------------------------------------------------------------------


def sell(shop: Shop) -> None:
    """Tasks, alone and together."""
    app, items = shop.app, [Item("lamp", Decimal("9.90")), Item("bulb", Decimal("0.10"))]
    app.begin()
    assert shop.quote.submit(items).result(WAIT_S) == Decimal("10.00")
    bound: hf.BoundTask[Fraction] = shop.share.bind(Fraction(1, 3)).with_headers({"for": "me"})
    first: hf.Handle[Fraction] = bound.submit(key="share-1")
    again = app.submit(bound, key="share-1")
    assert (again.key, again.result(WAIT_S)) == (first.key, Fraction(1, 6))
    assert shop.share.handle(first.key).result(WAIT_S) == Fraction(1, 6)
    later = shop.share.bind(Fraction(1)).submit(delay=3_600, priority=1)
    details: hf.TaskDetails = later.view()
    assert (details.type, details.payload) == (shop.share.name, {"part": "1"})
    app.handle(later.key).cancel()
    two = app.submit_many([shop.share.bind(Fraction(1)), shop.share.bind(Fraction(2))])
    assert [handle.result(WAIT_S) for handle in two] == [Fraction(1, 2), Fraction(1)]
    nightly: hf.ScheduleView = app.schedule("nightly", bound, cron="0 3 * * *")
    app.unschedule(nightly.schedule_id)
    assert shop.books.ran[0] == "quote for main street"


def repair(shop: Shop) -> None:
    """Incidents."""
    shop.app.submit_many([shop.fragile.bind(2), shop.fragile.bind(1)])
    wait_until(lambda: len(shop.app.incidents("fragile")) == 2)
    found: list[hf.IncidentView] = shop.app.incidents("fragile")
    shop.app.retry_incident(found[0].incident_key)
    shop.app.discard_incident(found[1].incident_key)
    try:
        shop.app.handle(found[1].task_key or "").result(WAIT_S)
    except hf.TaskFailed as problem:
        assert advice(problem) == "look at the incident"


def deliver(shop: Shop) -> None:
    """Processes, from the first version of an order to a changed one."""
    app = shop.app
    deployed: list[hf.ProcessDefinition] = app.deploy(INVOICE, ORDER)
    assert ORDER.definition().id in {each.process_id for each in app.definitions(latest=True)}
    handle: hf.ProcessHandle = app.start("order", order("A-1"), key="A-1")
    app.publish("picked-up", "A-1", ttl=60)
    app.publish("paid", "A-1", ttl=60)
    result = handle.result(WAIT_S)
    assert (result["receipt"], result["boxes"]) == ("11.88 from 4711", ["box with lamp"])
    moved, ended = app.start_many("order", [order("A-2"), order("A-3")])
    wait_until(lambda: is_at(moved, "pick-up"))
    listed: list[hf.InstanceDetails] = app.instances("order")
    assert {each.process_instance_key for each in listed} == {moved.key, ended.key}
    moved.set_variables({"gift": False})
    moved.migrate(deployed[1])
    moved.modify(move={"pick-up": "done"})
    assert moved.result(WAIT_S)["gift"] is False
    app.instance(ended.key).cancel()


def is_at(handle: hf.ProcessHandle, element: str) -> bool:
    return element in {each.element_id for each in handle.view().elements}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def together(shop: Shop) -> None:
    """Transactions: all of it, or nothing."""

    def fill(t: hf.Transaction) -> tuple[hf.Handle[Fraction], hf.MessageHandle]:
        t.start("invoice", {"total": 7}, key="invoice-7")
        return t.submit(shop.share, Fraction(4)), t.publish("sold", "A-7", ttl=1)

    with shop.app.transaction() as t:
        part, message = fill(t)
    assert part.result(WAIT_S) == Fraction(2) and message.key
    try:
        with shop.app.transaction() as t:
            fill(t)
    except hf.TransactionAborted as problem:
        assert problem.refused[0]["code"] == "ALREADY_EXISTS"
        assert advice(problem) == "see which operation was refused"


def settle(shop: Shop) -> None:
    """A job that is completed together with what follows it."""

    @shop.app.task
    def pay(number: str) -> str:
        with shop.app.transaction() as t:
            t.submit(shop.wrap.bind(number), key=f"wrap-{number}")
            t.complete(result=f"paid {number}")
        return "not this"

    assert pay.submit("A-8").result(WAIT_S) == "paid A-8"


# --- pages and feeds --------------------------------------------------------------------------


def admit(package: hf.Package, offset: int) -> hf.Admission:
    return hf.Admission.SKIP if "draft" in package.metadata else hf.Admission.ACCEPT


def show_pages(app: Holdfast, folder: Path) -> None:
    """A folder that is published, and one that follows it."""
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "home.html").write_text("lamps")
    site: hf.ContentPublisher = app.publisher("site", folder / "pages")
    east: hf.ContentSubscriber = app.subscriber(
        "east", of="site", into=folder / "east", editable=True, precondition=admit
    )
    offset = site.add("/").offset
    site.test()
    site.add("/home.html", metadata={"draft": "yes"})
    site.invalidate("/home.html")
    east.wait_until_idle(WAIT_S)
    assert east.condition is not hf.SubscriberCondition.CLOSED and not east.reason
    print("east", east.ready, east.lag, "behind,", east.imported, "imported", east.progress)
    queue: hf.ContentQueue = site.queue("east")
    wait_until(lambda: bool(site.subscribers()) and len(queue) == 0)
    assert list(queue) == [] and queue.head is None and site.errors("east") == []
    site.clear("east", up_to=offset)
    for skip in (site.remove, site.retry):
        with suppress(hf.NotFound):
            skip("east", offset)
    assert site.farm().publisher == app.publishers()[0].publisher
    assert site.skipped == [] and next(iter(site.events()), None) is not None
    site.delete("/home.html")
    east.close()
    site.close()


def read_feed(feed: hf.Owned) -> None:
    """The function of a partition: it runs where the partition is owned."""
    if feed.token == "all":
        feed.split(["lamps", hf.NewPartition("bulbs", ("all",))])
        return
    assert feed.epoch > 0 and not feed.is_leaving
    feed.commit((feed.offset or 0) + 1, watermark=5)
    feed.flush(WAIT_S)
    feed.merge("rest", parents=["lamps", "bulbs"]) if feed.token != "rest" else feed.wait(WAIT_S)


async def watch_feed(feed: hf.Owned) -> None:
    feed.commit("page 1")
    await feed.flush_async(WAIT_S)
    await feed.leaving()


def share_feeds(app: Holdfast) -> None:
    """Partitions that programs share."""
    feeds: hf.PartitionGroup = app.group("feeds", partitions=["all"], run=read_feed).start()
    feeds.declare(["extra"])
    wait_until(lambda: "rest" in feeds.owned)
    assert feeds.member in feeds.members and feeds.epoch > 0 and feeds.alarms == []
    assert feeds.partitions["rest"] and feeds.watermark in (None, 5)
    feeds.stop()


def work(app: Holdfast) -> None:
    """Workers of one's own."""
    idle: hf.Worker = app.worker(concurrency=1, mode=hf.WorkerMode.THREADS, name="idle").start()
    idle.stop()
    helper = app.worker(tasks=["share"], name="helper")
    helper.add(app.tasks["wrap"])
    thread = threading.Thread(target=helper.run)
    thread.start()
    time.sleep(0.05)
    helper.stop()
    thread.join()
    print("helper:", helper.completed, "done,", helper.failed, "failed,", helper.lost, "too late")


# --- all of it --------------------------------------------------------------------------------


def main(folder: Path) -> None:
    """Runs the shop on a folder."""
    print("holdfast", hf.__version__)
    config = hf.Config(partitions=1)
    with Holdfast.open(folder / "shop", workers=2, config=config, codec=ShopCodec()) as app:
        shop = Shop(app)
        sell(shop)
        repair(shop)
        deliver(shop)
        together(shop)
        settle(shop)
        show_pages(app, folder)
        share_feeds(app)
        print("look at it:", app.console())
        work(app)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
