"""Texts that are no expressions, and values that are null for a reason: what is said, and where."""

from typing import ClassVar

import pytest
from tests.model.feel.table import evaluated, warned

from holdfast import model
from holdfast.errors import InvalidArgument
from holdfast.model import feel
from holdfast.model.feel import FeelError, parse

REFUSED = [
    ("total > )", "Expected an operand, but found ')' at line 1, column 9"),
    ("", "Expected an operand, but found the end at line 1, column 1"),
    ("1 +", "Expected an operand, but found the end at line 1, column 4"),
    ("a +\n  * b", "Expected an operand, but found '*' at line 2, column 3"),
    ("a b", "Expected an operator, but found 'b' at line 1, column 3"),
    ("a #", "Expected an operator, but found '#' at line 1, column 3"),
    ("(1 + 2", "Expected ')', but found the end at line 1, column 7"),
    ("[1, 2", "Expected ']' or ',', but found the end at line 1, column 6"),
    ("xs[", "Expected an operand after '[' at line 1, column 3"),
    ("{a 1}", "Expected ':' or a name, but found '1' at line 1, column 4"),
    ("{a: 1, a: 2}", "Expected each key once, but found 'a' twice at line 1, column 11"),
    ("function(a, a) 1", "Expected each parameter once, but found one twice"),
    ("if a then b", "Expected 'else', but found the end at line 1, column 12"),
    ("if a b", "Expected an operator or 'then', but found 'b' at line 1, column 6"),
    ("for x return x", "Expected 'in', but found 'return' at line 1, column 7"),
    ("for x in xs", "Expected ',' or 'return', but found the end at line 1, column 12"),
    ("some x in xs", "Expected ',' or 'satisfies', but found the end at line 1, column 13"),
    ("x between 1", "Expected 'and', but found the end at line 1, column 12"),
    ("x instance of foo", "Expected a type, but found 'foo' at line 1, column 15"),
    ("x instance of list<number<", "Expected '>', but found '<'"),
    ("1..3", "Expected the end of the expression, but found '..' at line 1, column 2"),
    ('"abc', 'Expected " to end what begins with ", but found the end at line 1, column 1'),
    ("1 /* a", "Expected */ to end what begins with /*, but found the end at line 1, column 3"),
    ("`a", "Expected ` to end what begins with `, but found the end at line 1, column 1"),
    ("f(a: 1, 2)", "Expected all arguments to have names, or none; found both"),
    ('1 + "\ud800"', "Expected Unicode, but found half a surrogate pair at line 1, column 6"),
    (r'"\uD800"', r"Expected a character, but found '\uD800' at line 1, column 1"),
    ("1e9999", "Expected a smaller number at line 1, column 1"),
    ("5x", "Expected an operand, but found '5x' at line 1, column 1"),
    ("1 + random number()", "'random number' is refused: a replay has to give the same result"),
    ("uuid()", "'uuid' is refused: a replay has to give the same result"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_an_error_says_what_was_expected_and_where(text: str, message: str) -> None:
    with pytest.raises(FeelError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert "of the expression" in caught.value.message


def test_an_error_shows_the_expression_and_carries_its_place() -> None:
    with pytest.raises(FeelError) as caught:
        parse("total > )")
    assert caught.value.message.endswith('of the expression "total > )"')
    assert caught.value.fields == {"line": 1, "column": 9, "expression": "total > )"}
    assert isinstance(caught.value, InvalidArgument)


def test_a_long_expression_is_shown_in_part() -> None:
    with pytest.raises(FeelError) as caught:
        parse("abc + " * 100 + ")")
    assert len(caught.value.message) < 200


WARNED = [
    ("  x", "No variable 'x' (line 1, column 3)"),
    ("1 +\n y", "No variable 'y' (line 2, column 2)"),
    ("{a: 1}.b", "No entry 'b' in the context (line 1, column 8)"),
    ("1 / 0", "Division by zero (line 1, column 3)"),
    ('1 + "a"', "Cannot add a string to a number (line 1, column 3)"),
    ('1 < "a"', "Cannot compare a number with a string (line 1, column 3)"),
    ("[1][5]", "No item 5 in a list of 1 (line 1, column 4)"),
    ('date("x")', "Expected a date such as '2026-01-31', but found 'x' (line 1, column 1)"),
    ('@"x"', "Expected a date and time such as"),
    ("abs(true)", "Expected 'n' of 'abs' to be a"),
    ("abs(1, 2)", "Expected abs(n: number|"),
    ("nobody(1)", "No variable 'nobody' (line 1, column 1)"),
    ('matches("a", "[")', "Expected more at character 2 of the pattern '[' (line 1, column 1)"),
    ("true and 1", "Expected a boolean, but found a number (line 1, column 6)"),
]


@pytest.mark.parametrize(("text", "message"), WARNED, ids=[text for text, _ in WARNED])
def test_what_is_null_says_why_and_where(text: str, message: str) -> None:
    assert any(warning.startswith(message) for warning in warned(text))


def test_an_expression_that_asks_whether_something_is_there_gives_no_warning() -> None:
    for text in ("is defined(nobody.name)", "get or else(nobody, 1)"):
        warnings: list[str] = []
        parse(text).evaluate({}, 0, warnings)
        assert warnings == []


def test_warnings_are_bounded() -> None:
    warnings: list[str] = []
    parse("for i in 1..1000 return nobody").evaluate({}, 0, warnings)
    assert len(warnings) == 32


def test_names_are_the_variables_that_may_be_read() -> None:
    def names(text: str) -> set[str]:
        return set(parse(text).names)

    assert names("1 + 2") == set()
    assert names("a + b.c") == {"a", "b"}
    assert names("{a: 1, b: a + c}") == {"c"}
    assert names("for x in xs return x + y") == {"xs", "y"}
    assert names("orders[status = wanted]") == {"orders", "status", "wanted"}
    assert names("function(a) a + b") == {"b"}
    assert names("count(items)") == {"items"}
    assert names("custom(items)") == {"custom", "items"}
    assert names("`my var` > 1") == {"my var"}


def test_only_the_variables_that_are_needed_are_asked_for() -> None:
    class Lazy(dict[str, int]):
        asked: ClassVar[list[str]] = []

        def get(self, key: str, default: object = None) -> object:
            self.asked.append(key)
            return super().get(key, default)

    given = Lazy(a=1, b=2)
    assert parse("if a = 1 then a else b").evaluate(given, 0) == 1
    assert "b" not in given.asked


def test_an_expression_is_parsed_once() -> None:
    assert parse("a + 1") is parse("a + 1")
    assert parse("a + 1").text == "a + 1"
    assert repr(parse("a")) == "Expression('a')"


def test_what_the_package_promises() -> None:
    assert sorted(feel.__all__) == [
        "BUILTINS", "Builtin", "Expression", "FeelError", "Function", "Range", "SharedBudget",
        "YearsMonths", "decode_json", "encode_json", "parse", "parse_date_time", "parse_duration",
        "to_json",
    ]  # fmt: skip
    assert model.__doc__


def test_nothing_of_the_run_is_left_behind() -> None:
    """The same expression evaluates to the same, whatever it was evaluated with before."""
    text = "{a: x, b: for i in [a] return i}.b[1]"
    assert [evaluated(text, {"x": x}) for x in (1, 2, 1)] == [1, 2, 1]
