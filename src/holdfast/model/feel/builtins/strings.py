"""Built-in functions on strings."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.model.feel.bounds import TEXT_CHARS_MAX
from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.numeric import Number, integral
from holdfast.model.feel.patterns import Pattern, pattern_of
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import CHARS_PER_STEP, SLOT_BYTES, Run
from holdfast.model.feel.text import joined
from holdfast.model.feel.values import an, kind_of

RECASED_PER_STEP = 4  # characters beyond ASCII
SPACES_PER_STEP = 64  # characters that may be space
FILLED_PER_STEP = 8  # characters of a replacement that may refer to a group
PART_STEPS, PART_BYTES = 10, 80  # a text of its own, beside its characters
REFERENCE = re.compile(r"\\([\\$])|\$(\d)")


@builtin(
    "substring(string: string, start position: number, length: number?)",
    "The characters from a position on, from the end when negative.",
    'substring("foobar", -2, 1)',
    '"a"',
)
def substring(run: Run, text: str, start: Number, length: Number | None) -> str:
    """A part of a text; all that follows where no length is given."""
    start = integral(start)
    if start == 0:
        raise Problem(f"Expected a position from 1 or from -1, but found {start}")
    if length is not None and length < 0:
        raise Problem(f"Expected a length that is not negative, but found {length}")
    begin = start - 1 if start > 0 else max(len(text) + start, 0)
    end = len(text) if length is None else min(begin + integral(length), len(text))
    return run.make(text, max(end - begin, 0))[begin:end]


@builtin(
    "string length(string: string)", "How many characters it has.", 'string length("foo")', "3"
)
def string_length(run: Run, text: str) -> int:
    return len(text)


@builtin("upper case(string: string)", "In capitals.", 'upper case("aBc4")', '"ABC4"')
def upper_case(run: Run, text: str) -> str:
    """Letter by letter."""
    if text.isascii():
        return run.make(text, len(text)).upper()
    return _recased(run, text, text.upper)


@builtin("lower case(string: string)", "In small letters.", 'lower case("aBc4")', '"abc4"')
def lower_case(run: Run, text: str) -> str:
    """Letter by letter."""
    if text.isascii():
        return run.make(text, len(text)).lower()
    return _recased(run, text, text.lower)


def _recased(run: Run, text: str, change: Callable[[], str]) -> str:
    """A text beyond ASCII in another case; some letters become three."""
    chars = 3 * len(text)
    if chars > TEXT_CHARS_MAX:
        raise Spent(f"The evaluation makes a string of more than {TEXT_CHARS_MAX} characters")
    run.spend(chars // RECASED_PER_STEP)
    run.make(text, chars)
    return change()


@builtin(
    "substring before(string: string, match: string)",
    "What is before the first occurrence; nothing if there is none.",
    'substring before("foobar", "bar")',
    '"foo"',
)
def substring_before(run: Run, text: str, match: str) -> str:
    """What is in front of a match."""
    _search(run, text, match)
    end = max(text.find(match), 0)
    return run.make(text, end)[:end]


@builtin(
    "substring after(string: string, match: string)",
    "What is behind the first occurrence; nothing if there is none.",
    'substring after("foobar", "ob")',
    '"ar"',
)
def substring_after(run: Run, text: str, match: str) -> str:
    """The rest behind a match; everything behind an empty one."""
    _search(run, text, match)
    at = text.find(match)
    return run.make(text, len(text) - at)[at + len(match) :] if at >= 0 else ""


@builtin(
    "contains(string: string, match: string)",
    "Whether a text contains another one.",
    'contains("foobar", "of")',
    "false",
)
def contains(run: Run, text: str, match: str) -> bool:
    """Looked for from the front."""
    _search(run, text, match)
    return match in text


def _search(run: Run, text: str, match: str) -> None:
    """Pay for looking for a text in another: Python compares up to 100 characters at each place."""
    if len(text) > CHARS_PER_STEP:
        run.spend(len(text) * (4 + min(len(match), 100)) // CHARS_PER_STEP)


@builtin(
    "starts with(string: string, match: string)",
    "Whether a text starts with another one.",
    'starts with("foobar", "fo")',
    "true",
)
def starts_with(run: Run, text: str, match: str) -> bool:
    """Compared from the front."""
    run.read(match)
    return text.startswith(match)


@builtin(
    "ends with(string: string, match: string)",
    "Whether a text ends with another one.",
    'ends with("foobar", "r")',
    "true",
)
def ends_with(run: Run, text: str, match: str) -> bool:
    """Compared from the end."""
    run.read(match)
    return text.endswith(match)


@builtin("trim(string: string)", "Without the space around it.", 'trim("  a b ")', '"a b"')
def trim(run: Run, text: str) -> str:
    """Unicode's space counts too."""
    run.steps += len(text) // SPACES_PER_STEP
    return run.make(text, len(text)).strip()


@builtin("is blank(string: string)", "Whether it is only space.", 'is blank("  ")', "true")
def is_blank(run: Run, text: str) -> bool:
    """An empty text is blank too."""
    run.steps += len(text) // SPACES_PER_STEP
    return not run.make(text, len(text)).strip()


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
    run.spend(2 * len(items), SLOT_BYTES * len(items))
    texts = [item for item in items if item is not None]
    for item in texts:
        if type(item) is not str:
            raise Problem(f"Expected strings, but found {an(kind_of(item))}")
    return joined(run, (prefix or "", joined(run, texts, delimiter or ""), suffix or ""))


# --- regular expressions ----------------------------------------------------------------------


@builtin(
    "matches(input: string, pattern: string, flags: string?)",
    "Whether a regular expression is found in a text.",
    'matches("foobar", "^fo*b")',
    "true",
)
def matches(run: Run, text: str, pattern: str, flags: str | None) -> bool:
    return pattern_of(run, pattern, flags or "").search(run, text, 0) is not None


@builtin(
    "replace(input: string, pattern: string, replacement: string, flags: string?)",
    "The text with each match replaced; `$1` is what the first group matched.",
    'replace("abcd", "(ab)|(a)", "[1=$1][2=$2]")',
    '"[1=ab][2=]cd"',
)
def replace(run: Run, text: str, pattern: str, replacement: str, flags: str | None) -> str:
    """A text in which every match has made way."""
    parts: list[str] = []
    at = 0
    for spans in _found(run, pattern_of(run, pattern, flags or ""), text):
        parts += [_part(run, text, at, spans[0]), _filled(run, replacement, text, spans)]
        at = spans[1]
    return joined(run, [*parts, text[at:]])


def _part(run: Run, text: str, begin: int, end: int) -> str:
    """A part of a text, once it is paid for."""
    run.spend(PART_STEPS, PART_BYTES)
    return run.make(text, end - begin)[begin:end]


def _filled(run: Run, replacement: str, text: str, spans: tuple[int, ...]) -> str:
    """What a match makes way for, with its groups put in."""
    if "$" not in replacement and "\\" not in replacement:
        run.spend(len(replacement) // CHARS_PER_STEP, PART_BYTES)
        return replacement
    run.spend(len(replacement) // FILLED_PER_STEP, PART_BYTES)

    def one(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        group = 2 * int(found[2])
        if group >= len(spans) or spans[group] < 0 or spans[group + 1] < 0:
            return ""
        return _part(run, text, spans[group], spans[group + 1])

    run.make(replacement, len(replacement))
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
    for spans in _found(run, pattern_of(run, delimiter, ""), text):
        if spans[1] > spans[0]:
            parts.append(_part(run, text, at, spans[0]))
            at = spans[1]
    return [*parts, _part(run, text, at, len(text))]


@builtin(
    "extract(string: string, pattern: string)",
    "All parts of a text that match a regular expression.",
    'extract("order 12 and 34", "[0-9]+")',
    '["12", "34"]',
)
def extract(run: Run, text: str, pattern: str) -> list[str]:
    """The matches, from the first on."""
    found = _found(run, pattern_of(run, pattern, ""), text)
    return [_part(run, text, spans[0], spans[1]) for spans in found]


def _found(run: Run, pattern: Pattern, text: str) -> Iterator[tuple[int, ...]]:
    """Every match that does not reach into the one before it."""
    at = 0
    while at <= len(text) and (spans := pattern.search(run, text, at)) is not None:
        yield spans
        at = spans[1] + (spans[1] == spans[0])
