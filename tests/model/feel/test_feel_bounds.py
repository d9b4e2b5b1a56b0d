"""What expressions may not do to the engine: each bound refuses, and says which it is."""

from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.feel.table import evaluated

from holdfast.model.feel import FeelError, encode_json, parse
from holdfast.model.feel.bounds import (
    EXPRESSION_CHARS_MAX,
    NESTING_MAX,
    STEPS_MAX,
    TEXT_CHARS_MAX,
)
from holdfast.model.feel.run import Run

MANY = str(10**9)
LAUGHS = "{a0: [1, 1], " + ", ".join(f"a{i}: [a{i - 1}, a{i - 1}]" for i in range(1, 60)) + "}"
TALL = "{a0: [1], " + ", ".join(f"a{i}: [a{i - 1}]" for i in range(1, 500)) + "}.a499"
LONG = '{s0: "0123456789", ' + ", ".join(f"s{i}: s{i - 1} + s{i - 1}" for i in range(1, 60)) + "}"
FOREVER = "(function(f) f(f))(function(f) f(f))"


@pytest.mark.parametrize(
    "text",
    [
        f"for i in 1..{MANY} return i",
        f"for i in [1..{MANY}] return i",
        "for i in 1..2000, j in 1..2000 return 1",
        f"some i in 1..{MANY} satisfies false",
        f"count((for i in 1..{MANY} return i)[true])",
        "for i in 1..5000 return partial",
        "{xs: for i in 1..1000 return i, ys: for x in xs return xs, zs: "
        "for y in ys return concatenate(xs, flatten(ys))}.zs",
        f"{LAUGHS}.a59 = {LAUGHS}.a59",
        f"string({LAUGHS})",
        f"flatten({LAUGHS}.a59)",
        f"distinct values([{LAUGHS}])",
        f"list contains([{LAUGHS}], {LAUGHS})",
        FOREVER,
        "{f: function(g, x) sort([1, 2], function(a, b) g(g, x)), y: f(f, 1)}.y",
        "(function(f) [1][f(f)])(function(f) [1][f(f)])",
        "sort(for i in 1..200000 return modulo(i * 7919, 200003), function(a, b) a < b)",
    ],
)
def test_work_without_end_is_refused(text: str) -> None:
    begun = monotonic()
    with pytest.raises(FeelError, match=f"{STEPS_MAX} steps|bytes|levels"):
        evaluated(text)
    assert monotonic() - begun < 20


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        '{s: string join(for i in 1..1000 return "0123456789"), t: replace(s, "", s)}.t',
        '{s: string join(for i in 1..1000 return "0123456789"), '
        "t: string join(for i in 1..1000 return s, s)}.t",
    ],
)
def test_a_string_without_end_is_refused(text: str) -> None:
    with pytest.raises(FeelError, match=f"{TEXT_CHARS_MAX} characters"):
        evaluated(text)


def test_a_value_that_is_too_large_or_too_deep_is_not_written() -> None:
    with pytest.raises(FeelError, match="parts"):
        encode_json(evaluated(LAUGHS))
    with pytest.raises(FeelError, match="deep"):
        encode_json(evaluated(TALL))
    for text in (f"string({TALL})", f"{TALL} = {TALL}", f"flatten({TALL})"):
        with pytest.raises(FeelError, match="deep"):
            evaluated(text)


def test_a_long_text_is_refused() -> None:
    assert parse(" " * (EXPRESSION_CHARS_MAX - 1) + "1")
    with pytest.raises(FeelError, match=f"at most {EXPRESSION_CHARS_MAX} characters"):
        parse(" " * EXPRESSION_CHARS_MAX + "1")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[", "]"), ("-", ""), ("{a: ", "}"), ("f(", ")"), ("if a then b else ", ""), ("", ".a"),
     ("", "[x]"), ("", "(1)"), ("function() ", ""), ("for x in y return ", ""), ("", " = 1"),
     ("not(", ")")],
)  # fmt: skip
def test_nesting_is_bounded(opening: str, closing: str) -> None:
    """At the bound an expression evaluates, however it is nested; beyond it, it is refused."""
    levels = NESTING_MAX - (2 if opening.startswith("for") else 1)  # `x in y` is a level too
    expression = parse(opening * levels + "z" + closing * levels)
    expression.evaluate({"z": 1, "f": 1, "y": [1]}, 0)
    with pytest.raises(FeelError, match=f"at most {NESTING_MAX} levels"):
        parse(opening * (levels + 1) + "z" + closing * (levels + 1))
    with pytest.raises(FeelError):
        parse(opening * 5_000 + "z" + closing * 5_000)


def test_long_is_not_deep() -> None:
    assert evaluated(" + ".join(["1"] * 5_000)) == 5_000
    assert evaluated(" and ".join(["true"] * 3_000)) is True
    assert evaluated("(" * 3_000 + "1" + ")" * 3_000) == 1


def test_the_bounds_are_within_reach() -> None:
    assert evaluated("count(for i in 1..300000 return i)") == 300_000
    assert evaluated("sum(for i in 1..100000 return i)") == 5_000_050_000
    deep = "(function(f, n) f(f, n))(function(f, n) if n < 1 then 0 else 1 + f(f, n - 1), 30)"
    assert evaluated(deep) == 30


def test_too_many_names_of_one_loop_are_refused() -> None:
    names = ", ".join(f"x{i} in [1]" for i in range(17))
    with pytest.raises(FeelError, match="at most 16 names"):
        parse(f"for {names} return 1")


# --- regular expressions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "a*a*a*a*a*a*b", "(.*)*x", "(a?){25}a{25}$"]
)
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    begun = monotonic()
    evaluated("matches(text, pattern)", {"text": "a" * 1_000 + "!", "pattern": pattern})
    assert monotonic() - begun < 5


def test_a_pattern_is_bounded() -> None:
    for pattern in ("a" * 1_001, "(a{1000}){1000}", "(" * 50 + "a" + ")" * 50, "a{5000}", r"(a)\1"):
        assert evaluated("matches(text, pattern)", {"text": "a", "pattern": pattern}) is None


def test_a_word_is_found_in_a_long_text() -> None:
    given = {"text": "abc " * 200_000 + "order 17"}
    assert evaluated('matches(text, "order [0-9]+")', given) is True
    assert evaluated('extract(text, "order [0-9]+")', given) == ["order 17"]
    assert evaluated('matches(text, "orders")', given) is False


def test_a_long_text_and_a_long_pattern_end_at_the_bound() -> None:
    given = {"text": "a" * 500_000, "pattern": "(a{0,500}b){3}"}
    with pytest.raises(FeelError, match="steps"):
        evaluated("matches(text, pattern)", given)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", "(?:ab)", "(a|ab)", "(b)", "^", "$"])
REPEATS = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "{1,2}", "{2}"])
PIECES = st.tuples(ATOMS, REPEATS).map(lambda pair: pair[0] + pair[1] * (pair[0] not in "^$"))
PATTERNS = st.lists(st.lists(PIECES, max_size=4).map("".join), min_size=1, max_size=3).map("|".join)


@given(pattern=PATTERNS, text=st.text("ab1", max_size=8))
def test_patterns_match_as_python_does(pattern: str, text: str) -> None:
    import re

    from holdfast.model.feel.patterns import pattern_of

    found = re.search(pattern, text)
    run = Run({}, 0, None, [], 0)
    spans = pattern_of(run, pattern, "").search(run, text, 0)
    if found is None or ("$" in pattern and "\n" in text):
        assert spans is None
    else:
        assert spans is not None and spans[:2] == found.span()


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "expected"),
    [
        (r"\p{Lu}\p{Ll}+", "", "Äpfel", True),
        (r"^\P{N}$", "", "5", False),
        ("^[a-z-[aeiou]]+$", "", "xyz", True),
        ("^[a-z-[aeiou]]+$", "", "xaz", False),
        ("h e l l o", "x", "hello", True),
        ("a.b", "q", "axb", False),
        ("a.b", "q", "a.b", True),
        ("a.b", "", "a\nb", False),
        ("a.b", "s", "a\nb", True),
        ("^b$", "", "a\nb", False),
        ("^b$", "m", "a\nb", True),
        ("ÄB", "i", "äb", True),
        (r"[\w.-]+@[\w-]+\.[a-z]{2,}", "", "ada@example.org", True),
        (r"\bfoo\b", "", "a foo b", True),
        (r"[\]\\^-]", "", "-", True),
        ("[]a]", "", "]", True),
        ("a{2,}", "", "aaa", True),
    ],
)
def test_the_flavour_is_that_of_xpath(pattern: str, flags: str, text: str, expected: bool) -> None:
    given = {"text": text, "pattern": pattern, "flags": flags}
    assert evaluated("matches(text, pattern, flags)", given) is expected
