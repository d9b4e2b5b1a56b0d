"""What counts as the same output, and what a new user would stop at."""

from printed import matches, surprises

_SHOWN = """stored as 2251799813685249
tick at 17:51:24
left: 4
"""


def test_keys_times_and_blanks_may_differ():
    assert matches(_SHOWN, "stored  as 9007199254741264\ntick at 03:00:01\nleft: 4\n")


def test_a_different_word_number_or_line_is_a_difference():
    assert not matches(_SHOWN, _SHOWN.replace("left: 4", "left: 5"))
    assert not matches(_SHOWN, _SHOWN.replace("stored", "kept"))
    assert not matches(_SHOWN, _SHOWN + "one more line\n")
    assert not matches("", "something\n")


def test_any_number_will_do_where_a_page_says_so():
    assert matches(_SHOWN, _SHOWN.replace("left: 4", "left: 5"), any_number=True)


def test_an_ellipsis_stands_for_the_rest_of_a_line_or_for_lines():
    assert matches("a …\n…\nz\n", "a b c\nd\ne\nz\n")
    assert matches("a …\n…\nz\n", "a b c\nz\n")
    assert not matches("a …\nz\n", "a b\nc\nz\n")


def test_warnings_errors_and_tracebacks_are_surprises():
    for line in (
        "Traceback (most recent call last):",
        "shop.py:3: DeprecationWarning: old",
        "2026-11-16T18:07:55Z [warning  ] task failed",
        "error: no node answers",
    ):
        assert surprises(f"fine\n{line}\n") == [line]
    assert not surprises("no open incidents\n3 completed, 0 failed\n")
