"""What goes in comes back as it was, or is refused by its place; nothing changes on the way."""

import dataclasses
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import (
    BusinessError,
    Holdfast,
    InvalidArgument,
    Process,
    TaskFailed,
    otherwise,
    path,
    when,
)
from holdfast.client.arguments import Arguments
from holdfast.client.codec import PLAIN_VALUES
from holdfast.errors import HoldfastError
from holdfast.testing import app

decode, decoder_of, encode = PLAIN_VALUES.decode, PLAIN_VALUES.decoder_of, PLAIN_VALUES.encode
NAN, INFINITY = float("nan"), math.inf


@dataclasses.dataclass
class Photo:
    data: bytes
    note: Any = None


class Point(msgspec.Struct):
    x: float
    more: Any = None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (NAN, "variables: NaN is not a number that JSON can carry"),
        ({"total": NAN}, "variables.total: NaN"),
        ({"a": None, "b": [1.0, {"c": -INFINITY}]}, "variables.b[1].c: -Infinity"),
        ({"t": (1, 2, INFINITY)}, "variables.t[2]: Infinity"),
        ({"p": Point(NAN)}, "variables.p.x: NaN"),
        ({"d": Decimal("NaN")}, "variables.d: NaN"),
        ({"d": Decimal("-Infinity")}, "variables.d: -Infinity"),
        ({"long": [*range(50), b"x"]}, "variables.long[50]: expected a value that JSON carries"),
        ({"b": b"x"}, "variables.b: expected a value that JSON carries, but found bytes"),
        ({"b": bytearray(b"x")}, "variables.b: expected a value that JSON carries, but found byte"),
        ({"b": memoryview(b"x")}, "variables.b: expected a value that JSON carries, but found mem"),
        ({b"k": 1}, "a key of variables: expected a value that JSON carries"),
        ({"p": Point(1.0, b"x")}, "variables.p.more: expected a value that JSON carries"),
        ({"p": Photo(b"fine", b"x")}, "variables.p.note: expected a value that JSON carries"),
        ({"o": object()}, "variables.o: expected a value that JSON carries, but found object"),
        ({"o": "\ud800"}, "variables.o: 'utf-8' codec can't encode"),
    ],
)
def test_what_json_cannot_carry_is_refused_by_its_place(value: Any, said: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        encode(value, place="variables")
    assert raised.value.message.startswith(said)


NUMBERS = (
    st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
)
PLAIN = st.recursive(
    NUMBERS | st.text(st.characters(exclude_categories=("Cs",))) | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    back = decode(encode(value, place="value"))
    assert back == value
    assert repr(back) == repr(value), "a number keeps its type"


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_comes_back_with_all_its_digits(value: Decimal) -> None:
    data = encode({"d": value}, place="value")
    assert decoder_of(dict[str, Decimal])(data)["d"] == value
    untyped = decode(data)["d"]
    shown = untyped if isinstance(untyped, int | Decimal) else Decimal(repr(untyped))
    assert shown == value, "without a type it is the same number"


def test_without_a_type_a_number_is_a_float_only_if_that_is_exact() -> None:
    assert decode(b"[1.10, 0.1, 1e3, 3.141592653589793]") == [1.1, 0.1, 1000.0, math.pi]
    for text in ("1.00000000000000000000001", "123456789.123456789", "1E+400", "1e-400"):
        assert decode(text.encode()) == Decimal(text)
        assert isinstance(decode(text.encode()), Decimal)


def test_bytes_are_sent_where_both_sides_say_that_they_are_bytes() -> None:
    def take(one: bytes, some: list[bytes], photo: Photo, maybe: bytes | None = None) -> bytes:
        raise NotImplementedError

    arguments = Arguments(take)
    sent: dict[str, Any] = {"one": b"\x00\xff", "some": [b"a", b""], "photo": Photo(b"p", 1)}
    assert arguments.decode(arguments.encode((), sent)) == sent | {"maybe": None}
    assert not arguments.is_result_open
    for wrong in ({"one": b"", "some": [], "photo": Photo(b"p", b"untyped")},):
        with pytest.raises(InvalidArgument, match=r"photo\.note: expected"):
            arguments.encode((), wrong)


@pytest.mark.parametrize("value", [b"x", NAN, [NAN], {"a": b"x"}, Decimal("Infinity")])
@pytest.mark.parametrize("hint", [Any, object, dict, list, "bytes | str", dict[str, Any]])
def test_an_argument_that_would_change_on_the_way_is_refused(value: Any, hint: Any) -> None:
    def take(first: int, second: Any = None) -> None: ...

    take.__annotations__["second"] = hint
    with pytest.raises(InvalidArgument, match=r"^(Argument )?second"):
        Arguments(take).encode((1, value), {})


def test_variables_decide_exactly_and_results_are_exact() -> None:
    limit = Decimal("1000.000000000000000000000001")
    process = (
        Process("exact")
        .choose(when("total > 1000", path().task("dear")), otherwise(path().task("cheap")))
        .task("share")
    )
    big = 2**70 + 1
    with app() as work:
        seen: dict[str, Any] = {}

        @work.task
        def dear(total: Decimal, big: int) -> dict[str, Any]:
            seen.update(total=total, big=big)
            return {"tax": total * 2, "when": datetime(2026, 1, 1, tzinfo=UTC)}

        @work.task
        def cheap() -> None:
            raise AssertionError("it is more than 1000")

        @work.task
        def share(tax: Decimal) -> dict[str, Any]:
            return {"half": tax / 2, "id": UUID(int=7)}

        work.deploy(process)
        handle = work.start("exact", {"total": limit, "big": big})
        work.run_all()
        result = handle.result()
        assert seen == {"total": limit, "big": big}
        assert (result["half"], result["big"]) == (limit, big)
        assert result["tax"] == limit * 2


def test_what_a_task_gives_back_is_refused_by_its_place() -> None:
    with app() as work:

        @work.task(retries=0)
        def number() -> dict[str, float]:
            return {"mean": NAN}

        @work.task
        def picture() -> bytes:
            return b"\x89PNG"

        @work.task(retries=0)
        def untyped():
            return {"data": b"\x89PNG"}

        handles = [number.submit(), picture.submit(), untyped.submit()]
        work.run_all()
        with pytest.raises(TaskFailed, match=r"the result\.mean: NaN is not a number"):
            handles[0].result()
        assert handles[1].result() == b"\x89PNG"
        with pytest.raises(TaskFailed, match=r"the result\.data: expected a value that JSON"):
            handles[2].result()


def test_an_error_with_variables_that_json_cannot_carry_is_an_incident() -> None:
    with app() as work:

        @work.task(retries=5)
        def charge() -> None:
            raise BusinessError("DECLINED", "no cover", score=NAN)

        work.deploy(Process("order").task("charge"))
        work.start("order")
        assert work.run_all() == 1
        [incident] = work.incidents()
        assert "variables.score: NaN is not a number" in incident.error


def test_variables_and_messages_are_refused_before_anything_is_sent() -> None:
    with app() as work:
        work.deploy(Process("order").task("charge"))
        handle = work.start("order")
        for send in (
            lambda: work.start("order", {"total": NAN}),
            lambda: work.publish("paid", "A-1", {"total": NAN}),
            lambda: handle.set_variables({"total": NAN}),
            lambda: handle.modify(variables={"total": NAN}),
        ):
            with pytest.raises(InvalidArgument, match=r"variables\.total: NaN"):
                send()


@pytest.mark.parametrize(
    "send",
    [
        lambda work, task: task.submit(key=""),
        lambda work, task: work.submit_many([task.bind()], keys=[""]),
        lambda work, task: work.start("order", key=""),
        lambda work, task: work.publish("paid", "A-1", message_id=""),
        lambda work, task: work.schedule("nightly", task.bind(), cron="", every=60),
        lambda work, task: work.schedule("", task.bind(), every=60),
        lambda work, task: work.handle("").view(),
        lambda work, task: work.instance("").view(),
        lambda work, task: Holdfast.connect(""),
        lambda work, task: Holdfast.connect("http://127.0.0.1:1", token=""),
    ],
)
def test_an_empty_name_is_not_taken_for_none(send: Any) -> None:
    with app() as work:
        task = work.task(name="task")(lambda: None)
        work.deploy(Process("order").task("charge"))
        with pytest.raises(HoldfastError) as raised:
            send(work, task)
        assert isinstance(raised.value, InvalidArgument)
