"""Several owners of one partition in a real broker: by processes that die and brokers that do."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from bench.peers.kafka import KafkaServer
from tests.kafka_server import open_kafka_journal

from holdfast.errors import ResourceExhausted, Unavailable, Unknown
from holdfast.journal import Append, Appended, Entry, Journal, Outcome, Refused, Start, Taken

pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer

from holdfast.journal.kafka import producing
from holdfast.journal.kafka.address import parse_kafka_url

pytestmark = pytest.mark.xdist_group("kafka")


@contextlib.asynccontextmanager
async def journals(url: str, count: int = 1) -> AsyncIterator[list[Journal]]:
    """As many as there are processes: each with clients of its own."""
    opened: list[Journal] = [open_kafka_journal(url) for _ in range(count)]
    for journal in opened:
        journal.create_topic("t", 2)
    try:
        yield opened
    finally:
        await asyncio.gather(*(journal.close() for journal in opened))


async def take(journal: Journal, epoch: int | None = None) -> Taken:
    taken = await journal.take("t", 1, epoch)
    assert isinstance(taken, Taken), taken
    return taken


LONG = (pytest.mark.soak, pytest.mark.timeout(1_800))


async def told(outcome: Outcome) -> Outcome:
    if isinstance(outcome, asyncio.Future):
        try:
            return await outcome
        except Unknown as unknown:
            return unknown
    return outcome


async def append(
    journal: Journal, entries: Sequence[bytes], epoch: int, offset: int | None = None
) -> Outcome:
    (outcome,) = await journal.append_many([Append("t", 1, list(entries), epoch, offset)])
    return await told(outcome)


async def everything(journal: Journal) -> list[bytes]:
    found: list[Entry] = []
    offset = journal.bounds("t", 1).earliest
    while entries := await journal.read("t", 1, offset):
        found += entries
        offset = entries[-1].offset + 1
    return [entry.payload for entry in found]


async def fresh_view(url: str) -> list[bytes]:
    """What somebody sees who has seen nothing yet."""
    async with journals(url) as (journal,):
        return await everything(journal)


# --- fences -----------------------------------------------------------------------------------


def test_an_owner_that_was_overtaken_is_refused_for_good_and_the_new_one_goes_on(
    kafka_url: str,
) -> None:
    async def story() -> None:
        async with journals(kafka_url, 2) as (old, new):
            first = await take(old)
            assert isinstance(await append(old, [b"a"], first.epoch, first.next), Appended)
            second = await take(new)
            assert second.epoch == first.epoch + 1
            late = await append(old, [b"late", b"later"], first.epoch)
            assert isinstance(late, Refused)
            assert late.epoch == second.epoch
            end = await append(new, [b"b"], second.epoch, second.next)
            assert isinstance(end, Appended), "what the former owner wrote is in its way"
            for _ in range(5):
                assert isinstance(await append(old, [b"again"], first.epoch), Refused)
            assert isinstance(await append(new, [b"c"], second.epoch, end.next), Appended)
            assert await everything(new) == [b"a", b"b", b"c"]
            assert await everything(old) == [b"a", b"b", b"c"]
        assert await fresh_view(kafka_url) == [b"a", b"b", b"c"]

    asyncio.run(story())


def test_of_several_that_take_a_partition_at_once_one_has_it(kafka_url: str) -> None:
    async def story() -> None:
        async with journals(kafka_url, 3) as opened:
            for _ in range(4):
                found = await asyncio.gather(*(each.take("t", 1) for each in opened))
                newest = max(each.epoch for each in found)
                owners = [
                    journal
                    for journal, each in zip(opened, found, strict=True)
                    if isinstance(each, Taken) and each.epoch == newest
                ]
                assert len(owners) == 1
                outcomes = [await append(each, [b"x"], newest) for each in opened]
                written = [isinstance(each, Appended) for each in outcomes]
                assert written == [each is owners[0] for each in opened]
        assert await fresh_view(kafka_url) == [b"x"] * 4

    asyncio.run(story())


def open_transaction(url: str) -> Producer:
    """Of a program that writes to the topic, though it should not, and then hangs."""
    address = parse_kafka_url(url)
    settings = {
        "bootstrap.servers": ",".join(address.servers),
        "transactional.id": uuid.uuid4().hex,
    }
    producer = Producer({**settings, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(address.topic("t"), b"not ours", partition=0)
    producer.flush(30)
    return producer


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_that_somebody_has_left_open_holds_nobody_up(
    kafka_url: str, is_committed: bool
) -> None:
    async def story() -> None:
        async with journals(kafka_url, 2) as (old, new):
            first = await take(old)
            end = await append(old, [b"a"], first.epoch, first.next)
            assert isinstance(end, Appended)
            stranger = open_transaction(kafka_url)
            assert isinstance(await append(old, [b"b"], first.epoch, end.next), Appended)
            second = await take(new)
            end = await append(new, [b"c"], second.epoch, second.next)
            assert isinstance(end, Appended)
            assert await everything(new) == await fresh_view(kafka_url) == [b"a", b"b", b"c"]
            end_it = stranger.commit_transaction if is_committed else stranger.abort_transaction
            end_it(30)
            assert isinstance(await append(new, [b"d"], second.epoch, end.next), Appended)
            assert await everything(new) == await everything(old) == [b"a", b"b", b"c", b"d"]
        assert await fresh_view(kafka_url) == [b"a", b"b", b"c", b"d"]

    asyncio.run(story())


def test_of_two_that_expect_the_same_end_without_an_epoch_one_is_written(kafka_url: str) -> None:
    async def story() -> None:
        async with journals(kafka_url, 2) as (one, two):
            appends = [[Append("t", 1, [b"1"], None, 0)], [Append("t", 1, [b"2"], None, 0)]]
            (first,), (second,) = await asyncio.gather(
                one.append_many(appends[0]), two.append_many(appends[1])
            )
            assert sorted([type(first).__name__, type(second).__name__]) == ["Appended", "Refused"]
            assert len(await fresh_view(kafka_url)) == 1

    asyncio.run(story())


def test_writers_without_an_epoch_take_turns_where_each_reads_what_the_other_wrote(
    kafka_url: str,
) -> None:
    async def story() -> None:
        async with journals(kafka_url, 2) as opened:
            streams = [each.stream("t", 1, Start.EARLIEST) for each in opened]
            end, written = 0, list[bytes]()
            for turn in range(6):
                writer, entry = opened[turn % 2], b"%d" % turn
                (outcome,) = await writer.append_many([Append("t", 1, [entry], None, end)])
                assert isinstance(outcome, Appended), outcome
                (stale,) = await writer.append_many([Append("t", 1, [b"stale"], None, end)])
                assert isinstance(stale, Refused)
                end = outcome.next
                written.append(entry)
                for stream in streams:
                    (found,) = await asyncio.wait_for(anext(stream), 10)
                    assert found.payload == entry
            (early,) = await opened[0].append_many([Append("t", 1, [b"early"], None, end + 1)])
            assert isinstance(early, Refused)
        assert await fresh_view(kafka_url) == written

    asyncio.run(story())


def test_the_epoch_outlives_restarts_and_all_that_is_discarded(kafka_url: str) -> None:
    async def story() -> None:
        for start in range(3):
            async with journals(kafka_url) as (journal,):
                taken = await take(journal)
                assert taken.epoch == start + 1
                await append(journal, [b"x"], taken.epoch, taken.next)
                journal.discard("t", 1, journal.bounds("t", 1).next)
                assert await everything(journal) == []
        async with journals(kafka_url) as (journal,):
            refused = await journal.take("t", 1, 3)
            assert isinstance(refused, Refused)
            assert refused.epoch == 3

    asyncio.run(story())


def test_a_stream_hears_what_another_process_writes(kafka_url: str) -> None:
    async def story() -> None:
        async with journals(kafka_url, 2) as (writer, reader):
            stream = reader.stream("t", 1, Start.EARLIEST)
            found: list[bytes] = []
            epoch, end = await take(writer)
            for number in range(20):
                outcome = await append(writer, [b"%d" % number, b"x"], epoch, end)
                assert isinstance(outcome, Appended)
                end = outcome.next
                if number == 10:
                    epoch, end = await take(writer)
                while len(found) < 2 * (number + 1):
                    found += [each.payload for each in await asyncio.wait_for(anext(stream), 10)]
            assert found[::2] == [b"%d" % number for number in range(20)]
            assert reader.bounds("t", 1).next == end

    asyncio.run(story())


# --- processes that die -----------------------------------------------------------------------

_APPENDER = """
import asyncio, sys
from holdfast.journal import Append, Appended
from tests.kafka_server import open_kafka_journal

async def main():
    journal = open_kafka_journal(sys.argv[1])
    epoch, end = await journal.take("t", 1)
    number = 0
    while True:
        entries = [b"%d/%d" % (epoch, number)] * 200
        (outcome,) = await journal.append_many([Append("t", 1, entries, epoch, end)])
        assert isinstance(outcome, Appended)
        end = outcome.next
        print(f"{epoch}/{number}", flush=True)
        number += 1

asyncio.run(main())
"""


def kill_an_appender(url: str, after: int) -> list[bytes]:
    """Starts a process that appends, and kills it in the middle; what it was told is durable."""
    child = subprocess.Popen(
        [sys.executable, "-c", _APPENDER, url], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().strip() for _ in range(after)]
    child.send_signal(signal.SIGKILL)
    acknowledged += [each.strip() for each in child.stdout if each.endswith(b"\n")]
    child.wait()
    child.stdout.close()
    assert all(acknowledged), "it ended by itself"
    return acknowledged


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=LONG)])
def test_what_a_killed_owner_had_under_way_is_whole_or_not_there(
    kafka_url: str, kills: int
) -> None:
    async def story() -> None:
        acknowledged: list[bytes] = []
        async with journals(kafka_url) as (journal,):
            for kill in range(kills):
                dead = await asyncio.to_thread(kill_an_appender, kafka_url, 10 + 7 * kill % 20)
                acknowledged += dead
                await take(journal)
                found = await everything(journal)
                assert len(found) % 200 == 0, "a part of an append is there"
                whole = [found[at] for at in range(0, len(found), 200)]
                assert [set(found[at : at + 200]) for at in range(0, len(found), 200)] == [
                    {each} for each in whole
                ]
                assert len(set(whole)) == len(whole), "nothing is doubled"
                assert set(acknowledged) <= set(whole), "what was acknowledged is there"
        assert await fresh_view(kafka_url) == found

    asyncio.run(story())


def test_small_and_large_appends_follow_each_other_in_order(kafka_url: str) -> None:
    async def story() -> None:
        async with journals(kafka_url) as (journal,):
            epoch, end = await take(journal)
            expected: list[bytes] = []
            for number, count in enumerate((1, 40, 1, 700, 40, 700, 1, 2, 600, 33)):
                entries = [b"%d/%d" % (number, each) for each in range(count)]
                outcome = await append(journal, entries, epoch, end)
                assert isinstance(outcome, Appended), outcome
                end = outcome.next
                expected += entries
            waiting = [append(journal, [b"last %d" % n] * n, epoch) for n in (1, 700, 1, 40)]
            assert all(isinstance(each, Appended) for each in await asyncio.gather(*waiting))
            expected += [b"last %d" % n for n in (1, 700, 1, 40) for _ in range(n)]
            assert await everything(journal) == expected

    asyncio.run(story())


# --- brokers that die -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 600])
def test_an_append_that_nobody_answered_is_in_the_log_once_it_is_taken_again_or_never(
    kafka: KafkaServer, kafka_url: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producing, "KAFKA_DELIVERY_MS", 1_000)

    async def story() -> None:
        async with journals(kafka_url) as (journal,):
            epoch, end = await take(journal)
            known = await append(journal, [b"known"], epoch, end)
            assert isinstance(known, Appended)
            kafka.pause()
            try:
                unknown = await append(journal, [b"unknown"] * count, epoch, known.next)
            finally:
                kafka.resume()
            assert isinstance(unknown, Unknown)
            refused = await append(journal, [b"behind"], epoch)
            assert isinstance(refused, Refused), "until it is taken again this epoch has ended"
            again = await take(journal)
            assert again.epoch > epoch
            found = await everything(journal)
            assert found in ([b"known"], [b"known", *[b"unknown"] * count])
            assert isinstance(await append(journal, [b"new"], again.epoch, again.next), Appended)
            assert await everything(journal) == [*found, b"new"]

    asyncio.run(story())


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=LONG)])
def test_appends_go_on_where_a_broker_that_was_killed_runs_again(
    kafka: KafkaServer, kafka_url: str, kills: int
) -> None:
    """The broker is killed under load: nothing is lost, nothing is doubled."""

    async def story() -> None:
        written: list[bytes] = []
        followed: list[bytes] = []
        async with journals(kafka_url, 2) as (journal, reader):
            epoch, end = await take(journal)
            stopping = False

            async def follow() -> None:
                async for entries in reader.stream("t", 1, Start.EARLIEST):
                    followed.extend(entry.payload for entry in entries)

            async def load() -> None:
                nonlocal epoch, end
                number = 0
                while not stopping:
                    entry = b"%d" % number
                    try:
                        outcome = await append(journal, [entry], epoch, end)
                    except ResourceExhausted:  # nothing was sent
                        await asyncio.sleep(0.05)
                        continue
                    if isinstance(outcome, Appended):
                        written.append(entry)
                        end = outcome.next
                    else:
                        assert isinstance(outcome, Unknown), outcome
                        epoch, end = await take(journal)
                        if entry in await everything(journal):
                            written.append(entry)
                    number += 1

            following = asyncio.create_task(follow())
            loading = asyncio.create_task(load())
            for _ in range(kills):
                before = len(written)
                await until(lambda before=before: len(written) >= before + 50)
                kafka.kill()
                await refused_as_away(journal)
                kafka.launch()
                await asyncio.to_thread(kafka.wait_until_ready)
            before = len(written)
            await until(lambda: len(written) >= before + 50 or loading.done())
            stopping = True
            await loading
            assert await everything(journal) == written
            await until(lambda: followed == written)
            following.cancel()
        assert await fresh_view(kafka_url) == written

    asyncio.run(story())


async def until(is_true: Callable[[], bool]) -> None:
    """Waits for something that load or a broker brings about."""
    for _ in range(6_000):
        if is_true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within a minute")


async def refused_as_away(journal: Journal) -> None:
    """Once it is known that no broker can be reached, an append is refused and nothing is sent."""
    waiting = [asyncio.create_task(journal.append("t", 2, [b""]))]
    for _ in range(600):
        waiting.append(asyncio.create_task(journal.append("t", 2, [b""])))
        done, _ = await asyncio.wait(waiting[-1:], timeout=0.05)
        if done:
            with pytest.raises(Unavailable, match="nothing was appended"):
                await waiting.pop()
            return
    raise AssertionError("it was not noticed that no broker can be reached")
