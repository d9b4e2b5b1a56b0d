"""Publishers and subscribers around one node, in virtual time, over a network that loses messages.

Subscribers crash in the middle of commits and come back with what was committed; the node crashes;
connections are lost, slow and doubled; clocks jump; stores refuse packages; queues are cleared and
failed packages tried again; old packages and blobs are dropped. Everything follows from a seed.
"""

import asyncio
import contextlib
from collections import Counter
from random import Random
from typing import Any

from model_store import CrashedStore, WatchedStore
from package_kit import fill

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.cleaning import BlobKeeper
from holdfast.content.messages import (
    Package,
    PackageAction,
    PackageDistributed,
    SnapshotTaken,
    decode_event,
    decode_package,
    decode_status,
)
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.publisher import ContentService
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber import (
    Habits,
    Subscriber,
    SubscriberCondition,
    SubscriberExtras,
)
from holdfast.content.topics import ContentTopic
from holdfast.errors import HoldfastError, InvalidArgument, Unavailable, Unknown
from holdfast.journal.memory import MemoryJournal
from holdfast.testing.network import SimulatedNetwork, Weather

STORY_SECONDS = 400.0
QUIET_SECONDS = 7_200.0
PUBLISHERS = ("site", "shop")
NODE = "node"
NEEDS_SEEDING = SubscriberCondition.NEEDS_SEEDING


class RoughJournal(MemoryJournal):
    """A log whose appends fail now and then, with or without being written."""

    def __init__(self, world: "World", **options: Any) -> None:
        super().__init__(**options)
        self._world = world

    async def append_many(self, appends: Any) -> Any:
        [(topic, partition, *_)] = appends
        fails = self._world.is_rough and self._world.random.random() < 0.01
        if fails and self._world.random.random() < 0.5:
            raise Unavailable("the disk is away")
        before = self.bounds(topic, partition).next
        outcomes = await super().append_many(appends)
        self._world.appended(topic, self.read_now(topic, partition, before, 2**40))
        if fails:
            raise Unknown("nobody knows")
        return outcomes


class NetworkLog:
    """The log as a subscriber or publisher reaches it: by messages, some of which are lost."""

    def __init__(self, world: "World", name: str) -> None:
        self.blobs = world.blobs
        self._world = world
        self._name = name
        self._asked: dict[int, asyncio.Future[Any]] = {}
        world.network.attach(name, self._receive)

    def _receive(self, _: str, message: Any) -> None:
        number, answer = message
        waiting = self._asked.get(number)
        if waiting is not None and not waiting.done():
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)

    async def ask(self, what: str, *args: Any, **options: Any) -> Any:
        network = self._world.network
        if what == "snapshot_taken":
            left_out = self._world.places[self._name].store.left_out
            self._world.snapshots.append((args[0], left_out))
        number = network.number()
        self._asked[number] = waiting = asyncio.get_running_loop().create_future()
        network.send(self._name, NODE, (number, what, args, options))
        try:
            async with asyncio.timeout(options.get("wait_ms", 0) / 1000 + 5):
                return await waiting
        except TimeoutError:
            raise Unavailable(f"{what} was not answered") from None
        finally:
            del self._asked[number]

    def __getattr__(self, what: str) -> Any:
        async def ask(*args: Any, **options: Any) -> Any:
            return await self.ask(what, *args, **options)

        return ask


class KeptBlobs(MemoryBlobs):
    """All blobs that ever were: the checks still know what was cleaned up."""

    def __init__(self, blobs: MemoryBlobs) -> None:
        super().__init__()
        self._blobs = blobs

    def remember(self) -> None:
        self.content |= self._blobs.content


class JumpingClock:
    """A clock whose wall time is wrong, and sometimes jumps; spans are measured right."""

    def __init__(self, clock: Any) -> None:
        self.monotonic = clock.monotonic
        self.busy = clock.busy
        self.jump_ms = 0
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.jump_ms


class Place:
    """A subscriber with its store, which outlives it."""

    def __init__(self, world: "World", name: str, habits: Habits, extras: SubscriberExtras) -> None:
        self.world = world
        self.habits = habits
        self.extras = extras
        self.clock = JumpingClock(world.clock)
        self.store = WatchedStore(world, habits)
        self.subscriber: Subscriber | None = None

    def start(self) -> None:
        assert self.subscriber is None
        self.store.check()  # what was committed agrees, also after a crash
        log: Any = NetworkLog(self.world, self.habits.name)
        clock: Any = self.clock
        self.subscriber = Subscriber(
            log, self.store, self.habits, self.extras,
            store_id=f"store of {self.habits.name}", clock=clock,
        )  # fmt: skip
        self.subscriber.start()

    async def crash(self) -> None:
        """The process ends: nobody is told, and what is not committed is gone."""
        subscriber, self.subscriber = self.subscriber, None
        assert subscriber is not None
        self.world.network.detach(self.habits.name)
        for task in subscriber.tasks:
            task.cancel()
        for result in await asyncio.gather(*subscriber.tasks, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError | CrashedStore | None):
                raise result
        subscriber._fetcher.cancel()
        self.store.crash()

    @property
    def has_crashed(self) -> bool:
        """A crash in the middle of a commit ends the task that made it."""
        return self.subscriber is not None and self.subscriber.tasks[0].done()


class World:
    """All of them, and what is known of the log."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock: Any = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        self.is_rough = True
        self.happened: Counter[str] = Counter()
        self.network = SimulatedNetwork(
            seed=seed, weather=Weather(1, self.random.choice([10, 500, 3_000]), 0.05, 0.05)
        )
        gaps = self.random.random() < 0.3
        self.journal = RoughJournal(
            self, clock=self.clock, gap=(lambda: self.random.randrange(3)) if gaps else None
        )
        self.blobs = MemoryBlobs()
        self.all_blobs = KeptBlobs(self.blobs)
        self.packages: dict[int, Package] = {}  # all that were ever on the log, by offset
        self.distributed: list[PackageDistributed] = []
        self.places: dict[str, Place] = {}
        self.faults: list[AssertionError] = []
        self.snapshots: list[tuple[SnapshotTaken, frozenset[int]]] = []  # with what was left out
        self.service = self._new_service()
        self.network.attach(NODE, self._serve)
        self._serving: dict[asyncio.Task[None], None] = {}
        self._ids = 0

    def _new_service(self) -> ContentService:
        return ContentService(self.journal, lambda: self.blobs, self.clock)

    # --- the node -----------------------------------------------------------------------------

    def _serve(self, sender: str, message: Any) -> None:
        task = asyncio.create_task(self._answer(sender, *message))
        self._serving[task] = None
        task.add_done_callback(lambda done: self._serving.pop(done, None))

    async def _answer(self, sender: str, number: int, what: str, args: Any, options: Any) -> None:
        try:
            answer = await getattr(self.service, what)(*args, **options)
        except HoldfastError as error:
            answer = error
        self.network.send(NODE, sender, (number, answer))

    def appended(self, topic: str, entries: list[Any]) -> None:
        """Something is on the log: what it says is so."""
        for entry in entries:
            if topic == ContentTopic.PACKAGES.topic:
                self.packages[entry.offset] = decode_package(entry.payload)
                self.all_blobs.remember()
            elif topic == ContentTopic.EVENTS.topic:
                event = decode_event(entry.payload)
                if isinstance(event, PackageDistributed):
                    self._check_distributed(event)

    def _check_distributed(self, event: PackageDistributed) -> None:
        """Every subscriber that the node knows has the package when that is said."""
        assert self.packages[event.offset].package_id == event.package_id
        running = self.service._running
        assert running is not None
        for each, _ in running.state.topology.of(event.publisher):
            store = self.places[each.name].store
            assert store.progress(event.publisher).offset >= event.offset, "said too early"
        self.distributed.append(event)

    async def crash_node(self) -> None:
        self.happened["node crashed"] += 1
        self.network.detach(NODE)
        for task in list(self._serving):
            task.cancel()
        self.service.abandon()
        await asyncio.sleep(self.random.uniform(0, 20))
        self.service = self._new_service()
        await self.persistently(self.service.running)
        self.network.attach(NODE, self._serve)

    async def persistently(self, ask: Any) -> Any:
        while True:
            try:
                return await ask()
            except HoldfastError as error:
                if isinstance(error, InvalidArgument):
                    raise
                await asyncio.sleep(self.random.uniform(0.1, 2))

    # --- publishers ---------------------------------------------------------------------------

    async def publish(self, publisher: str) -> None:
        """One package, of whatever kind, until it is on the log."""
        random, log = self.random, NetworkLog(self, f"{publisher} {self.network.number()}")
        self._ids += 1
        kind, path = random.random(), self.any_path()
        if kind < 0.15:
            built = build_package(PackageAction.DELETE, [path])
        elif kind < 0.2:
            built = build_package(PackageAction.INVALIDATE, [path])
        elif kind < 0.25:
            built = build_package(PackageAction.TEST, [])
        else:
            source = MemoryRepository()
            below = [path, *(f"{path}/{each}" for each in "xy" if random.random() < 0.5)]
            body = b"%d " % self._ids * random.choice([1, 1, 1, 20_000])
            fill(source, {each: {"n": self._ids, "data": body} for each in below})
            is_deep = random.random() < 0.5
            deep = [path] if is_deep else []
            paths = [path] if is_deep else below
            built = build_package(PackageAction.ADD, paths, deep, RepositorySource(source))
        message = built.message(publisher, f"{publisher}-{self._ids}")

        async def attempt() -> Any:
            await store_package(built, log)  # type: ignore[arg-type]
            return await log.publish(message)

        published = await self.persistently(attempt)
        assert self.packages[published.offset].package_id == message.package_id

    def any_path(self) -> str:
        depth = self.random.choice([1, 2, 2, 3])
        return "".join(f"/{self.random.choice('abc')}" for _ in range(depth))

    # --- subscribers --------------------------------------------------------------------------

    def join(self) -> Place:
        random = self.random
        name = f"edge-{len(self.places)}"
        of = random.choice([("site",), ("shop",), ("site", "shop"), ("site", "shop")])
        habits = Habits(name, of, random.random() < 0.5, random.choice([-1, 0, 2]))
        others = [
            each
            for each, place in self.places.items()
            if of == place.habits.publishers and not place.store.seeded
        ]
        only_after = random.choice(others) if others and random.random() < 0.2 else None
        seed_from = random.choice(others) if others and self.is_torn else None
        extras = SubscriberExtras(only_after=only_after, seed_from=seed_from)
        place = self.places[name] = Place(self, name, habits, extras)
        place.start()
        return place

    @property
    def is_torn(self) -> bool:
        """Whether the log no longer has its first packages."""
        return self.journal.bounds(ContentTopic.PACKAGES.topic, 1).earliest > 0

    async def _ask_for_seeds(self) -> None:
        """A place that lacks what the log no longer keeps gets it from another place."""
        for place in self.places.values():
            subscriber = place.subscriber
            if subscriber is None or subscriber.condition is not NEEDS_SEEDING:
                continue
            with contextlib.suppress(HoldfastError):
                assert place.extras.seed_from is not None, subscriber.reason
                await self.service.take_snapshot(place.extras.seed_from)
                self.happened["seeded"] += 1

    async def crash_and_return(self, place: Place) -> None:
        if place.subscriber is None:
            return
        self.happened["crashed"] += 1
        await place.crash()
        await asyncio.sleep(self.random.choice([0.1, 2, 60]))
        place.start()

    # --- what happens -------------------------------------------------------------------------

    async def trouble(self) -> None:
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        end = loop.time() + STORY_SECONDS
        while loop.time() < end:
            await asyncio.sleep(self.random.expovariate(1 / 6))
            tasks.append(loop.create_task(self._happen()))
        await asyncio.gather(*tasks)
        self.is_rough = False
        self.network.heal()
        self.network.weather = Weather(1, 10)

    async def _happen(self) -> None:
        random = self.random
        place = random.choice(list(self.places.values()))
        what = random.choice(
            ["crash", "crash", "commit", "refuse", "clear", "remove", "retry", "retry", "pause",
             "jump", "join", "node", "retain", "clean"]
        )  # fmt: skip
        if what == "crash":
            await self.crash_and_return(place)
        elif what == "commit":  # the process dies in the middle of one of the next commits
            place.store.dies = random.choice(["before", "after", "unknown"])
            await asyncio.sleep(20)
            place.store.dies = ""
            if place.has_crashed:
                self.happened["crashed in a commit"] += 1
                await self.crash_and_return(place)
        elif what == "refuse":
            path = self.any_path()
            place.store.refused[path] = InvalidArgument("no such room")
            await asyncio.sleep(random.choice([1, 30, 120]))
            place.store.refused.pop(path, None)
        elif what == "pause":
            self.network.split([place.habits.name])
            await asyncio.sleep(random.choice([1, 40]))
            self.network.heal()
        elif what == "jump":
            place.clock.jump_ms = random.choice([-3_600_000, 3_600_000, 0])
        elif what == "join":
            known = {each.habits.publishers for each in self.places.values()}
            if len(self.places) < 6 and (len(known) == 3 or not self.is_torn):
                self.happened["joined"] += 1
                self.join()
        elif what == "node":
            if random.random() < 0.3:
                await self.crash_node()
        elif what == "retain":
            await self._retain()
        elif what == "clean":
            keeper = BlobKeeper(self.blobs, self.journal, self.clock)
            await keeper.clean()
        else:
            with contextlib.suppress(HoldfastError):  # it may have nothing of the kind
                await self._command(what, place)

    async def _command(self, what: str, place: Place) -> None:
        publisher, name = self.random.choice(place.habits.publishers), place.habits.name
        if what == "retry":
            failed = await self.service.errors(publisher, name)
            if failed:
                offset = self.random.choice(failed).offset
                await self.service.retry(publisher, name, offset)
                self.happened["retried"] += 1
            return
        queue = await self.service.queue(publisher, name)
        if queue.items:
            offset = self.random.choice(queue.items[:4]).offset
            await getattr(self.service, what)(publisher, name, offset)
            self.happened[what] += 1

    async def _retain(self) -> None:
        """Drops packages that no subscriber needs."""
        with contextlib.suppress(HoldfastError):
            recovery, subscribers = await self.service.needs()
            topic = ContentTopic.PACKAGES.topic
            needs = [each[topic] for each in (recovery, subscribers) if topic in each]
            behind = [
                place.store.start() for place in self.places.values()
            ]  # those that are on their way, and have not said so yet
            self.journal.discard(topic, 1, max(min([*needs, *behind]), 0))
            self.happened["dropped"] += 1

    # --- what must hold in the end ------------------------------------------------------------

    async def check(self) -> None:
        for fault in self.faults:
            raise fault
        for place in self.places.values():
            place.store.refused.clear()
            place.store.dies = ""
            if place.has_crashed:
                await place.crash()
            if place.subscriber is None:
                place.start()
        async with asyncio.timeout(QUIET_SECONDS):
            for place in list(self.places.values()):
                await self._settled(place)
        await asyncio.sleep(60)
        statuses = Counter(
            (each.subscriber, each.publisher, each.offset, each.outcome)
            for each in map(decode_status, self._payloads(ContentTopic.STATUSES))
        )
        for name, place in self.places.items():
            place.store.check()
            place.store.check_is_whole()
            assert not self.faults, self.faults
            said = {key for key in statuses if key[0] == name}
            assert place.store.statuses <= said, "what was committed is reported"
            await self._check_queue(name, place)
        assert len(self.distributed) == len({each.offset for each in self.distributed})
        expected = {
            offset for offset, each in self.packages.items() if each.action != PackageAction.TEST
            if any(each.publisher in place.habits.publishers for place in self.places.values())
        }  # fmt: skip
        assert {each.offset for each in self.distributed} == expected, "each is told of once"

    async def _settled(self, place: Place) -> None:
        while True:
            subscriber = place.subscriber
            assert subscriber is not None
            await self._ask_for_seeds()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(60):
                    await subscriber.wait_until(SubscriberCondition.IDLE)
            if subscriber.tasks[0].done():
                await subscriber.tasks[0]
            if place.store.is_whole():
                return
            await asyncio.sleep(1)

    async def _check_queue(self, name: str, place: Place) -> None:
        for publisher in place.habits.publishers:
            if publisher in await self.service.publishers():
                queue = await self.service.queue(publisher, name)
                assert queue.length == 0 and not queue.items

    def _payloads(self, topic: ContentTopic) -> list[bytes]:
        earliest = self.journal.bounds(topic.topic, 1).earliest
        return [each.payload for each in self.journal.read_now(topic.topic, 1, earliest, 2**40)]


async def story(seed: int) -> Counter[str]:
    """All of it with one seed; how much happened."""
    world = World(seed)
    await world.service.running()
    for _ in range(world.random.randint(1, 3)):
        world.join()

    async def publisher(name: str) -> None:
        for _ in range(world.random.randint(10, 40)):
            await world.publish(name)
            await asyncio.sleep(world.random.choice([0, 0, 1, 20]))

    loop = asyncio.get_running_loop()
    publishers = [loop.create_task(publisher(name)) for name in PUBLISHERS]
    await world.trouble()
    async with asyncio.timeout(QUIET_SECONDS):
        await asyncio.gather(*publishers)
    await world.check()
    for place in world.places.values():
        assert place.subscriber is not None
        await place.subscriber.close()
        world.happened["imported"] += place.subscriber.imported
    await world.service.stop()
    return world.happened
