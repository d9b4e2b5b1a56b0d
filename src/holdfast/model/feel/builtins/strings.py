"""Built-in functions on strings."""

import re
from typing import Any

from holdfast.model.feel.bounds import TEXT_CHARS_MAX
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.numeric import Number
from holdfast.model.feel.patterns import Pattern, pattern_of
from holdfast.model.feel.problems import FeelError, Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.text import bounded
from holdfast.model.feel.values import an, kind_of

REFERENCE = re.compile(r"\\([\\$])|\$(\d)")


@builtin(
    "substring(string: string, start position: number, length: number?)",
    "The characters from a position on, from the end when negative.",
    'substring("foobar", -2, 1)',
    '"a"',
)
def substring(run: Run, text: str, start: Number, length: Number | None) -> str:
    """A part of a text; all that follows where no length is given."""
    if type(start) is not int or start == 0:
        raise Problem(f"Expected a position from 1 or from -1, but found {start}")
    if length is not None and (type(length) is not int or length < 0):
        raise Problem(f"Expected a length that is not negative, but found {length}")
    begin = start - 1 if start > 0 else max(len(text) + start, 0)
    return text[begin:] if length is None else text[begin : begin + int(length)]


@builtin(
    "string length(string: string)", "How many characters it has.", 'string length("foo")', "3"
)
def string_length(run: Run, text: str) -> int:
    return len(text)


@builtin("upper case(string: string)", "In capitals.", 'upper case("aBc4")', '"ABC4"')
def upper_case(run: Run, text: str) -> str:
    return bounded(text.upper())


@builtin("lower case(string: string)", "In small letters.", 'lower case("aBc4")', '"abc4"')
def lower_case(run: Run, text: str) -> str:
    return bounded(text.lower())


@builtin(
    "substring before(string: string, match: string)",
    "What is before the first occurrence; nothing if there is none.",
    'substring before("foobar", "bar")',
    '"foo"',
)
def substring_before(run: Run, text: str, match: str) -> str:
    return text[: max(text.find(match), 0)]


@builtin(
    "substring after(string: string, match: string)",
    "What is behind the first occurrence; nothing if there is none.",
    'substring after("foobar", "ob")',
    '"ar"',
)
def substring_after(run: Run, text: str, match: str) -> str:
    """The rest behind a match; everything behind an empty one."""
    at = text.find(match)
    return text[at + len(match) :] if at >= 0 else ""


@builtin(
    "contains(string: string, match: string)",
    "Whether a text contains another one.",
    'contains("foobar", "of")',
    "false",
)
def contains(run: Run, text: str, match: str) -> bool:
    return match in text


@builtin(
    "starts with(string: string, match: string)",
    "Whether a text starts with another one.",
    'starts with("foobar", "fo")',
    "true",
)
def starts_with(run: Run, text: str, match: str) -> bool:
    return text.startswith(match)


@builtin(
    "ends with(string: string, match: string)",
    "Whether a text ends with another one.",
    'ends with("foobar", "r")',
    "true",
)
def ends_with(run: Run, text: str, match: str) -> bool:
    return text.endswith(match)


@builtin("trim(string: string)", "Without the space around it.", 'trim("  a b ")', '"a b"')
def trim(run: Run, text: str) -> str:
    return text.strip()


@builtin("is blank(string: string)", "Whether it is only space.", 'is blank("  ")', "true")
def is_blank(run: Run, text: str) -> bool:
    return not text.strip()


@builtin(
    "string join(list: list, delimiter: string?, prefix: string?, suffix: string?)",
    "The strings of a list as one, with something between them; nulls are left out.",
    'string join(["a", "b"], ", ", "[", "]")',
    '"[a, b]"',
)
def string_join(
    run: Run, items: list[Any], delimiter: str | None, prefix: str | None, suffix: str | None
) -> str:
    """Strings, one after the other."""
    run.spend(len(items))
    texts = [item for item in items if item is not None]
    for item in texts:
        if type(item) is not str:
            raise Problem(f"Expected strings, but found {an(kind_of(item))}")
    between = delimiter or ""
    length = sum(map(len, texts)) + len(between) * len(texts)
    if length > TEXT_CHARS_MAX + len(between):  # too long before it is put together
        raise FeelError(f"The evaluation makes a string of more than {TEXT_CHARS_MAX} characters")
    return bounded((prefix or "") + between.join(texts) + (suffix or ""))


# --- regular expressions ----------------------------------------------------------------------


@builtin(
    "matches(input: string, pattern: string, flags: string?)",
    "Whether a regular expression is found in a text.",
    'matches("foobar", "^fo*b")',
    "true",
)
def matches(run: Run, text: str, pattern: str, flags: str | None) -> bool:
    return pattern_of(pattern, flags or "").search(run, text, 0) is not None


@builtin(
    "replace(input: string, pattern: string, replacement: string, flags: string?)",
    "The text with each match replaced; `$1` is what the first group matched.",
    'replace("abcd", "(ab)|(a)", "[1=$1][2=$2]")',
    '"[1=ab][2=]cd"',
)
def replace(run: Run, text: str, pattern: str, replacement: str, flags: str | None) -> str:
    """A text in which every match has made way."""
    parts: list[str] = []
    length = at = 0
    for spans in _found(run, pattern_of(pattern, flags or ""), text):
        parts += [text[at : spans[0]], _filled(replacement, text, spans)]
        length += len(parts[-1]) + len(parts[-2])
        if length > TEXT_CHARS_MAX:
            break  # too long before it is put together
        at = spans[1]
    return bounded("".join(parts) + text[at:])


def _filled(replacement: str, text: str, spans: tuple[int, ...]) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        group = 2 * int(found[2])
        if group >= len(spans) or spans[group] < 0 or spans[group + 1] < 0:
            return ""
        return text[spans[group] : spans[group + 1]]

    return REFERENCE.sub(one, replacement)


@builtin(
    "split(string: string, delimiter: string)",
    "The parts of a text between the matches of a regular expression.",
    'split("John Doe", "\\s")',
    '["John", "Doe"]',
)
def split(run: Run, text: str, delimiter: str) -> list[str]:
    """The parts of a text; an empty match does not divide it."""
    parts: list[str] = []
    at = 0
    for spans in _found(run, pattern_of(delimiter, ""), text):
        if spans[1] > spans[0]:
            parts.append(text[at : spans[0]])
            at = spans[1]
    return [*parts, text[at:]]


@builtin(
    "extract(string: string, pattern: string)",
    "All parts of a text that match a regular expression.",
    'extract("order 12 and 34", "[0-9]+")',
    '["12", "34"]',
)
def extract(run: Run, text: str, pattern: str) -> list[str]:
    return [text[spans[0] : spans[1]] for spans in _found(run, pattern_of(pattern, ""), text)]


def _found(run: Run, pattern: Pattern, text: str) -> list[tuple[int, ...]]:
    """Every match that does not reach into the one before it."""
    found: list[tuple[int, ...]] = []
    at = 0
    while at <= len(text) and (spans := pattern.search(run, text, at)) is not None:
        found.append(spans)
        at = spans[1] + (spans[1] == spans[0])
    return found
