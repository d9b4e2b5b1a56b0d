"""However many wait for one message key, a message costs what it is given to."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_driver import Driver

from holdfast.engine.kernel import Command, Submission
from holdfast.engine.messages.state import Messages, OpenSubscription
from holdfast.engine.messages.values import (
    MessageIntent,
    NewMessage,
    NewSubscription,
    OfferAnswer,
    SubscriptionIntent,
    SubscriptionRef,
)
from holdfast.records import Record, RecordKind, ValueType
from holdfast.state import EMPTY
from holdfast.state.memory import MemoryStore

SUBSCRIPTION, MESSAGE = ValueType.MESSAGE_SUBSCRIPTION, ValueType.MESSAGE
FIRST = (2 << 51) + 1  # of instances on another partition: what they are sent stays in the outbox


def open_(key: int, process_id: str, once: bool = True, correlation: str = "k") -> Command:
    new = NewSubscription("m", correlation, process_id, once)
    return Command(SUBSCRIPTION, SubscriptionIntent.OPEN, FIRST + key, new)


PUBLISH = Command(MESSAGE, MessageIntent.PUBLISH, 0, NewMessage("m", "k"))


def offered(driver: Driver, since: int = 0) -> list[tuple[int, str]]:
    """Who was given a message: subscription and process, in the order of the log."""
    return [
        (each.key - FIRST, each.value.process_id)
        for each in driver.records()[since:]
        if each.kind is RecordKind.EVENT
        and each.value_type == SUBSCRIPTION
        and each.intent == SubscriptionIntent.OFFERED
    ]


def answer(driver: Driver, key: int, process_id: str, taken: bool) -> None:
    message = max(each.value.message for each in driver.records() if _is_offer(each, key))
    told = OfferAnswer(message, process_id, taken)
    driver.do(Command(SUBSCRIPTION, SubscriptionIntent.ANSWER, FIRST + key, told))


def _is_offer(record: Record, key: int) -> bool:
    return (
        record.value_type == SUBSCRIPTION
        and record.kind is RecordKind.EVENT
        and record.intent == SubscriptionIntent.OFFERED
        and record.key == FIRST + key
    )


class CountingStore(MemoryStore):
    """Counts the rows that are walked over."""

    walked = 0

    def scan(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        for row in super().scan(low, high):
            self.walked += 1
            yield row


def test_a_message_looks_at_the_subscriptions_that_it_is_given_to_and_not_at_the_others() -> None:
    driver = Driver()
    store = driver.store = CountingStore()
    driver.processor = driver._open(store, 1)
    for start in range(0, 3_000, 1_000):
        driver.step([Submission([open_(start + n, f"p{n % 3}") for n in range(1_000)])])
    driver.write_state()
    driver.submit(PUBLISH)
    store.walked = 0
    for _ in range(50):
        driver.submit(PUBLISH)
    assert store.walked <= 50 * 20
    wanted = [(3 * n + p, f"p{(3 * n + p) % 1_000 % 3}") for n in range(51) for p in range(3)]
    assert offered(driver) == wanted


def test_each_process_gets_it_once_the_oldest_first_and_other_keys_nothing() -> None:
    driver = Driver()
    for each in (
        open_(3, "a"), open_(1, "b"), open_(2, "a"), open_(0, "a", correlation="k2"),
        open_(4, "b", correlation=""), open_(5, "c", once=False),
    ):  # fmt: skip
        driver.do(each)
    driver.submit(PUBLISH)
    assert offered(driver) == [(1, "b"), (2, "a"), (5, "c")]
    driver.submit(PUBLISH)
    assert offered(driver)[3:] == [(3, "a")], "who has one does not get another"
    answer(driver, 5, "c", taken=True)
    answer(driver, 2, "a", taken=True)
    driver.submit(PUBLISH)
    assert offered(driver)[4:] == [(5, "c")], "one that waits for many gets the next"
    driver.do(Command(SUBSCRIPTION, SubscriptionIntent.CLOSE, FIRST + 1, SubscriptionRef()))
    assert driver.dump() == driver.replayed().state.dump()


def test_subscriptions_of_an_older_folder_get_their_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their rows stand in the order of the name and the key alone."""

    def open_as_before(self: Messages, key: int, new: NewSubscription) -> None:
        self.subscriptions.insert(key, OpenSubscription(new))
        self._waiting.insert((f"{new.name}\x01{new.correlation}", 0, key), EMPTY)

    driver = Driver()
    with monkeypatch.context() as before:
        before.setattr(Messages, "open", open_as_before)
        for each in (open_(1, "a"), open_(2, "a"), open_(3, "b", once=False)):
            driver.do(each)
    driver.write_state()
    driver.do(open_(0, "b"))
    driver.do(open_(4, "a"))
    for wanted in ([(0, "b"), (1, "a")], [(2, "a"), (3, "b")], [(4, "a")], []):
        since = len(driver.log)
        driver.submit(PUBLISH)
        assert offered(driver, since) == wanted
    answer(driver, 3, "b", taken=True)
    since = len(driver.log)
    driver.submit(PUBLISH)
    assert offered(driver, since) == [(3, "b")]
    for key, process_id in ((1, "a"), (2, "a"), (0, "b"), (4, "a")):
        answer(driver, key, process_id, taken=True)
    answer(driver, 3, "b", taken=False)
    assert not list(driver.view.messages._waiting.scan())
    assert not list(driver.view.messages.subscriptions.scan())


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["open", "publish", "answer", "refuse", "close", "store", "migrate"]),
              st.integers(0, 5), st.sampled_from("ab")), max_size=40,
)  # fmt: skip


@given(ACTIONS)
@settings(deadline=None, max_examples=60)
def test_whatever_happens_the_next_of_each_process_is_the_oldest_that_is_free(
    actions: list[tuple[str, int, str]],
) -> None:
    driver, opened = Driver(), 0
    for what, which, process_id in actions:
        rows: dict[int, Any] = dict(driver.view.messages.subscriptions.scan())
        keys = sorted(rows)
        if what == "open":
            driver.do(open_(opened * 7 % 100, process_id, once=which % 2 == 0))
            opened += 1
        elif what == "publish":
            driver.submit(PUBLISH)
        elif what == "store":
            driver.write_state()
        elif keys:
            key = keys[which % len(keys)]
            row = rows[key]
            if what == "close":
                ref = SubscriptionRef()
                driver.do(Command(SUBSCRIPTION, SubscriptionIntent.CLOSE, key, ref))
            elif what == "migrate":
                new = NewSubscription("m", "k", process_id, row.subscription.interrupting)
                driver.do(Command(SUBSCRIPTION, SubscriptionIntent.MIGRATE, key, new))
            elif row.offered:
                told = OfferAnswer(row.offered, row.subscription.process_id, what == "answer")
                driver.do(Command(SUBSCRIPTION, SubscriptionIntent.ANSWER, key, told))
        oldest: dict[str, int] = {}
        for key, row in sorted(driver.view.messages.subscriptions.scan()):
            if not row.offered:
                oldest.setdefault(row.subscription.process_id, key)
        wanted = sorted((key, process_id) for process_id, key in oldest.items())
        assert driver.view.messages.next_of_each("m", "k") == wanted
    assert driver.dump() == driver.replayed().state.dump()
