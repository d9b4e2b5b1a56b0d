"""Arguments are bound by the signature when submitted and checked by the types when run."""

import traceback
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel

from holdfast import InvalidArgument, TaskFailed
from holdfast.client.arguments import Arguments
from holdfast.errors import raised_line
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
        with pytest.raises(TaskFailed, match="has an incident"):
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
        ({"timeout": -1}, "timeout"),
    ],
)
def test_options_outside_their_limits_are_refused_with_their_name(
    options: dict[str, object], named: str
) -> None:
    with app() as work, pytest.raises(InvalidArgument, match=named):
        work.task(**options)(lambda: None).submit()  # type: ignore[call-overload]


# --- types, before anything is stored ---------------------------------------------------------


class Basket(BaseModel):
    apples: int


_TEXT: Any = "text"
Positive = Annotated[int, msgspec.Meta(gt=0)]
Name = NewType("Name", str)


@pytest.mark.parametrize(
    ("hint", "right", "wrong", "said"),
    [
        (str, ["", Colour.RED], [5, None, UUID(int=1), ["a"]], "expected str, but found 5 (int)"),
        (int, [5, 2**70], ["5", 1.5, True, None], "expected int, but found '5' (str)"),
        (float, [5, 1.5], ["5", True, Decimal(1)], "expected float, but found '5' (str)"),
        (bool, [True], [1, "yes"], "expected bool, but found 1 (int)"),
        (None, [None], [0, ""], "expected None, but found 0 (int)"),
        (bytes, [b"", bytearray(b"a")], ["a", 5], "expected bytes, but found 'a' (str)"),
        (int | None, [5, None], ["5", True], "expected int | None, but found '5' (str)"),
        (int | bool, [5, True], ["5"], "expected int | bool, but found '5' (str)"),
        (Name, [Name("a")], [5], "but found 5 (int)"),
        (Basket, [Basket(apples=1)], [{"apples": 1}, 5], "expected Basket, but found {"),
        (Basket | None, [Basket(apples=1), None], [5], "expected Basket | None, but found 5 (int)"),
        (list, [[1], ()], [5, {}], "expected list, but found int"),
        (dict[str, Any], [{"a": object}], [5, [1]], "expected dict[str, Any], but found int"),
        (list[int], [[1], [], (1,)], [["1"], [True], 5], "Argument it[0] of task"),
        (set[str], [{"a"}], [{1}, "a"], "expected str, but found int"),
        (tuple[int, str], [(1, "a")], [(1,), ("a", 1)], "expected `array` of length 2"),
        (dict[str, int], [{"a": 1}], [{"a": "1"}, []], "expected int, but found str"),
        (dict[int, str], [{1: "a"}], [{"one": "a"}], "expected int, but found str"),
        (Decimal, [Decimal("1.5"), 5], [b"", "x", None], "invalid decimal string"),
        (date, [date(2026, 1, 2)], [datetime.now(UTC), 5], "invalid RFC3339 encoded date"),
        (datetime, [datetime(2026, 1, 2, tzinfo=UTC)], [5, "soon"], "but found int"),
        (UUID, [UUID(int=7)], ["x", 5], "invalid UUID"),
        (Colour, [Colour.RED], ["blue", 5], "invalid enum value 'blue'"),
        (Literal["a", "b"], ["a"], ["c", 5], "invalid enum value 'c'"),
        (Address, [Address("a"), {"street": "a"}], [Address("a", _TEXT), 5], "int, but found str"),
        (list[Address], [[Address("a")]], [[Address("a", _TEXT)], [5]], "Argument it[0].number of"),
        (Positive, [5], [0, "5"], "expected `int` >= 1"),
        (Any, [5, "a", None, [1], {"a": 1}], [object()], "but found object"),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_is_refused_with_what_was_expected_and_found(
    hint: Any, right: list[Any], wrong: list[Any], said: str
) -> None:
    def take(first: int, it: Any) -> None: ...

    take.__annotations__["it"] = hint
    arguments = Arguments(take)
    for value in right:
        if value != {"a": object}:
            arguments.decode(arguments.encode((1, value), {}))
    messages: list[str] = []
    for value in wrong:
        with pytest.raises(InvalidArgument) as raised:
            arguments.encode((1,), {"it": value})
        messages.append(raised.value.message)
    assert said in messages[0]
    assert all(each.startswith(("Argument it", "it")) for each in messages), messages


def test_nothing_is_stored_of_a_submission_with_a_wrong_argument() -> None:
    with app() as work:

        @work.task
        def greet(name: str, times: int = 1) -> str:
            return name * times

        wrong: Any = greet
        said = r"Argument name of task greet: expected str, but found 5 \(int\)"
        with pytest.raises(InvalidArgument, match=said) as raised:
            wrong.submit(5)
        assert raised.value.fields["field"] == "name"
        with pytest.raises(InvalidArgument, match=said):
            work.submit_many([greet.bind("a"), wrong.bind(5)])
        with pytest.raises(InvalidArgument, match=said):
            work.schedule("nightly", wrong.bind(5), every=60)
        with pytest.raises(InvalidArgument, match=said), work.transaction() as t:
            t.submit(greet, "a")
            wrong_t: Any = t
            wrong_t.submit(greet, 5)
        said = r"fit greet\(name: str, times: int = 1\) -> str, but missing a required arg.*'name'"
        with pytest.raises(InvalidArgument, match=said):
            wrong.submit()
        assert work.run_all() == 0


def test_a_bool_is_no_number_and_anything_is_a_bool_beside_other_arguments() -> None:
    def take(anything: Any, number: int | dict[str, int], more: dict[str, Any]) -> None: ...

    arguments = Arguments(take)
    arguments.encode((True, 1, {}), {})
    arguments.encode((True, {"a": 1}, {"b": True}), {})
    with pytest.raises(InvalidArgument, match="Argument number of task take: expected int"):
        arguments.encode((True, True, {}), {})


def test_a_parameter_whose_default_is_none_takes_none() -> None:
    def take(first: int = None, second: str = "b") -> None: ...  # type: ignore[assignment] # noqa: RUF013

    arguments = Arguments(take)
    assert arguments.decode(arguments.encode((), {})) == {"first": None, "second": "b"}


def test_an_annotation_that_cannot_be_resolved_leaves_the_others_as_they_are() -> None:
    def take(first: "Nowhere", second: "int") -> None: ...  # type: ignore[name-defined] # noqa: F821

    arguments = Arguments(take)
    arguments.encode(({"a": 1}, 2), {})
    with pytest.raises(InvalidArgument, match="Argument second of task take: expected int"):
        arguments.encode((1, "two"), {})


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"to": "a", "body": 5}', "Argument body of task mail: expected str, but found int"),
        (b'{"to": "a"}', "Arguments of task mail: missing body"),
        (b'{"to": "a", "body": "b", "cc": "c"}', "Arguments of task mail: unknown cc"),
    ],
)
def test_a_job_whose_arguments_do_not_fit_says_which(payload: bytes, said: str) -> None:
    def mail(to: str, body: str) -> None: ...

    with pytest.raises(InvalidArgument) as raised:
        Arguments(mail).decode(payload)
    assert raised.value.message == said


def test_what_a_model_says_about_its_fields_is_one_line_without_its_library() -> None:
    class Item(BaseModel):
        count: int
        name: str

    def take(item: Item) -> None: ...

    with pytest.raises(InvalidArgument) as refused:
        Arguments(take).decode(b'{"item": {"count": "many"}}')
    assert refused.value.message == (
        "Argument item of task take: count: input should be a valid integer, unable to parse"
        " string as an integer, but found 'many'; name: field required"
    )


def test_the_line_of_an_error_is_what_was_raised() -> None:
    def told(error: BaseException) -> str:
        try:
            raise error
        except BaseException:
            return raised_line(traceback.format_exc())

    noted = ValueError("first line\n  second line")
    noted.add_note("a note")
    assert told(noted) == "ValueError: first line"
    assert told(KeyError("a")) == "KeyError: 'a'"
    assert (raised_line("no traceback\nbut two lines\n"), raised_line("")) == ("but two lines", "")
