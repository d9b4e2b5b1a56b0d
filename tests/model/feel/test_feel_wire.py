"""Values as JSON: what is written, and that it is the same every time."""

import subprocess
import sys
from decimal import Decimal

import pytest
from tests.model.feel.table import evaluated

from holdfast.model.feel import FeelError, decode_json, encode_json, parse, to_json

WRITTEN = [
    ("4 / 2", "2"),
    ("0.1 + 0.2", "0.3"),
    ("1 / 3", "0.3333333333333333333333333333333333"),
    ("10 ** 40", "1E+40"),
    ("9007199254740993", "9007199254740993"),
    ("10 ** 30 + 1", "1000000000000000000000000000001"),
    ('"ä\\n"', '"ä\\n"'),
    ("[true, null]", "[true,null]"),
    ("{b: 1, a: 2}", '{"b":1,"a":2}'),
    ('@"2026-07-31"', '"2026-07-31"'),
    ('@"10:30:00Z"', '"10:30:00Z"'),
    ('@"2026-07-31T10:30:00+02:00"', '"2026-07-31T10:30:00+02:00"'),
    ('@"2026-07-31T10:30:00@Europe/Paris"', '"2026-07-31T10:30:00@Europe/Paris"'),
    ('@"P1DT2H"', '"P1DT2H"'),
    ('{d: [@"P14M"]}', '{"d":["P1Y2M"]}'),
]


@pytest.mark.parametrize(("text", "written"), WRITTEN, ids=[text for text, _ in WRITTEN])
def test_a_value_is_written(text: str, written: str) -> None:
    assert encode_json(evaluated(text)).decode() == written


@pytest.mark.parametrize("text", ["[1..2]", "function(a) a", "{a: [function() 1]}"])
def test_what_json_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(FeelError, match="Expected a value that JSON has"):
        to_json(evaluated(text))


def test_numbers_come_back_with_all_their_digits() -> None:
    value = decode_json(b'{"a": 1.10, "b": 12345678901234567890, "c": 1e400}')
    assert value == {"a": Decimal("1.10"), "b": 12345678901234567890, "c": Decimal("1e400")}
    assert parse("a + 1").evaluate(value, 0) == Decimal("2.1")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b"nul", b'"\xff"', b"1e99999999999999999999"]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(FeelError, match="Expected JSON"):
        decode_json(data)


def test_floats_from_outside_are_written_as_they_look() -> None:
    assert encode_json({"a": 0.1, "b": [2.0, float("nan")]}) == b'{"a":0.1,"b":[2,null]}'


def test_importing_does_not_load_the_parser() -> None:
    code = "import sys, holdfast.model.feel; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
