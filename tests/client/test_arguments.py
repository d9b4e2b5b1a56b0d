"""Arguments are bound by the signature when submitted and checked by the types when run."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import msgspec
import pytest

from holdfast import InvalidArgument, TaskFailed
from holdfast.client.arguments import Arguments
from holdfast.testing import app


class Colour(StrEnum):
    RED = "red"


@dataclass
class Address:
    street: str
    number: int = 1


class Order(msgspec.Struct):
    order: int
    address: Address
    placed: datetime
    tags: set[str] = set()


def mixed(
    first: int, second: str = "two", *, third: list[int] | None = None, fourth: float
) -> None: ...


def test_arguments_are_bound_by_place_and_by_name_with_defaults() -> None:
    arguments = Arguments(mixed)
    bound = arguments.decode(arguments.encode((1,), {"fourth": 4.5}))
    assert bound == {"first": 1, "second": "two", "third": None, "fourth": 4.5}
    bound = arguments.decode(arguments.encode((1, "b"), {"third": [3], "fourth": 4}))
    assert bound == {"first": 1, "second": "b", "third": [3], "fourth": 4.0}


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        ((1, "b", [3], 4.0), {}),
        ((1,), {"fourth": 4.0, "fifth": 5}),
        ((1,), {"first": 1, "fourth": 4.0}),
        ((object(),), {"fourth": 4.0}),
    ],
)
def test_what_does_not_fit_the_signature_is_refused_when_submitted(
    args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument, match="Expected arguments that fit"):
        Arguments(mixed).encode(args, kwargs)


@pytest.mark.parametrize(
    "function",
    [
        lambda *args: None,
        lambda **kwargs: None,
        lambda key: None,
        lambda delay: None,
        eval("lambda first, /: None"),
    ],
    ids=["args", "kwargs", "key", "delay", "positional only"],
)
def test_a_signature_that_cannot_be_stored_is_refused_when_declared(function: object) -> None:
    with app() as work, pytest.raises(InvalidArgument):
        work.task(function)  # type: ignore[call-overload]


def test_types_are_restored_when_the_task_runs() -> None:
    seen: list[object] = []
    with app() as work:

        @work.task
        def take(
            order: Order, day: date, price: Decimal, who: UUID, colour: Colour, raw: bytes
        ) -> None:
            seen.extend([order, day, price, who, colour, raw])

        order = Order(1, Address("High Street"), datetime(2026, 1, 2, tzinfo=UTC), {"a"})
        sent = [order, date(2026, 1, 2), Decimal("9.90"), UUID(int=7), Colour.RED, b"\x00\xff"]
        handle = take.submit(*sent)
        work.run_all()
        handle.result()
        assert seen == sent
        assert [type(each) for each in seen] == [type(each) for each in sent]


def test_results_have_the_type_that_the_function_promises() -> None:
    with app() as work:

        @work.task
        def locate(street: str) -> Address:
            return Address(street, 7)

        @work.task
        def unlabelled(street: str):
            return Address(street, 7)

        handles = [locate.submit("a"), unlabelled.submit("b")]
        work.run_all()
        assert handles[0].result() == Address("a", 7)
        assert handles[1].result() == {"street": "b", "number": 7}
        assert work.handle(handles[0].key).result() == {"street": "a", "number": 7}


def test_arguments_that_are_stored_but_no_longer_fit_are_an_incident_at_once() -> None:
    with app() as work:
        work.task(name="take", retries=5)(lambda text: None).submit("seven")
        work.tasks.clear()

        @work.task(retries=5)
        def take(text: int) -> None: ...

        assert work.run_all() == 1
        (incident,) = work.incidents()
        assert "text" in incident.error


def test_a_result_that_is_no_json_fails_the_task() -> None:
    with app() as work:

        @work.task(retries=0)
        def strange() -> object:
            return object()

        handle = strange.submit()
        work.run_all()
        with pytest.raises(TaskFailed, match="INCIDENT"):
            handle.result()


def test_a_task_name_is_taken_once() -> None:
    with app() as work:
        work.task(name="same")(lambda: None)
        with pytest.raises(InvalidArgument, match="'same' is taken"):
            work.task(name="same")(lambda: None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"backoff": "hopeful"}, "exponential"),
        ({"retries": -1}, "retries"),
        ({"priority": 10**9}, "priority"),
        ({"name": "two\nlines"}, "type"),
        ({"timeout": -1}, "timeoutMs"),
    ],
)
def test_options_outside_their_limits_are_refused_with_their_name(
    options: dict[str, object], named: str
) -> None:
    with app() as work, pytest.raises(InvalidArgument, match=named):
        work.task(**options)(lambda: None).submit()  # type: ignore[call-overload]
