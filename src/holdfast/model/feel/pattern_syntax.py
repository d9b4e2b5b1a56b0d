"""What a regular expression says, read part by part, in the flavour of XPath.

Groups, alternatives, classes (with `\\p{L}` and subtraction), greedy and reluctant quantifiers,
`^` `$` and word boundaries. Flags: `i` either case, `s` a dot takes line ends too, `m` anchors at
line ends too, `x` spaces are for the reader, `q` everything is literal. References back to a group
are refused: matching them takes exponential time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from unicodedata import category

from holdfast.model.feel.bounds import PATTERN_CHARS_MAX
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.values import shown

GROUPS_NESTED_MAX = 40  # levels of brackets; at 5 frames each, 200 of Python's 1,000
REPEATS_MAX = 1_000  # the largest number in `{m,n}`

CharTest = Callable[[str], bool]


class Chars(NamedTuple):
    """One character that passes a test."""

    test: CharTest


class Assertion(NamedTuple):
    """A condition on a position, which takes no character."""

    test: Callable[[str, int], bool]


class Sequence(NamedTuple):
    """Parts, one after the other."""

    parts: list[Any]


class Group(NamedTuple):
    """A part in brackets; number 0 when what it matches is not kept."""

    number: int
    inside: Any


class Branch(NamedTuple):
    """Alternatives, the first preferred."""

    ways: list[Any]


class Repeat(NamedTuple):
    """A part several times; without end when `most` is None."""

    inside: Any
    least: int
    most: int | None
    greedy: bool


Part = Chars | Assertion | Sequence | Group | Branch | Repeat


def _word(char: str) -> bool:
    return char == "_" or category(char)[0] not in "PZC"


def _space(char: str) -> bool:
    return char in " \t\n\r"


def _digit(char: str) -> bool:
    return category(char) == "Nd"


def _name_start(char: str) -> bool:
    return char.isalpha() or char in "_:"


def _name(char: str) -> bool:
    return char.isalnum() or char in "_:.-"


def _not(test: CharTest) -> CharTest:
    return lambda char: not test(char)


CLASSES: dict[str, CharTest] = {
    "d": _digit, "w": _word, "s": _space, "i": _name_start, "c": _name,
}  # fmt: skip
CLASSES |= {letter.upper(): _not(test) for letter, test in CLASSES.items()}
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def _inside_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _word(text[at])


ASSERTIONS: dict[str, Callable[[str, int], bool]] = {
    "^": lambda text, at: at == 0,
    "$": lambda text, at: at == len(text),
    "m^": lambda text, at: at == 0 or text[at - 1] == "\n",
    "m$": lambda text, at: at == len(text) or text[at] == "\n",
    "b": lambda text, at: _inside_word(text, at) != _inside_word(text, at - 1),
    "B": lambda text, at: _inside_word(text, at) == _inside_word(text, at - 1),
}


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, text: str, flags: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.flags = flags

    def wrong(self, message: str) -> Problem:
        return Problem(f"{message} at character {self.at + 1} of the pattern '{self.text}'")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.text[self.at : self.at + 1]
        if not char:
            raise self.wrong("Expected more")
        self.at += 1
        return char

    def skipped(self, wanted: str) -> bool:
        if self.text.startswith(wanted, self.at):
            self.at += len(wanted)
            return True
        return False

    # --- structure ----------------------------------------------------------------------------

    def alternatives(self, depth: int) -> Any:
        ways = [self.sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            ways.append(self.sequence(depth))
        return ways[0] if len(ways) == 1 else Branch(ways)

    def sequence(self, depth: int) -> Sequence:
        parts: list[Any] = []
        while (char := self.peek()) and char not in "|)":
            parts.append(self.repeated(self.atom(depth)))
        return Sequence(parts)

    def repeated(self, part: Any) -> Any:
        """A part with the quantifier behind it."""
        char = self.peek()
        if not char or char not in "*+?{":
            return part
        self.at += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char) or self.counts()
        lazy = self.peek() == "?"
        self.at += lazy
        if (following := self.peek()) and following in "*+{?":
            raise self.wrong(f"Expected something to repeat, but found '{following}'")
        return Repeat(part, least, most, not lazy)

    def counts(self) -> tuple[int, int | None]:
        """The numbers in `{m,n}`."""
        end = self.text.find("}", self.at)
        least, comma, most = self.text[self.at : max(end, self.at)].partition(",")
        if not (least.isdecimal() and (not most or most.isdecimal())):
            raise self.wrong("Expected numbers in '{}'")
        self.at = end + 1
        low = int(least[:9])
        high = int(most[:9]) if most else None if comma else low
        if max(low, high or 0) > REPEATS_MAX or (high is not None and high < low):
            raise self.wrong(f"Expected counts in order and at most {REPEATS_MAX}")
        return low, high

    def atom(self, depth: int) -> Any:
        """One thing that can be repeated."""
        char = self.take()
        match char:
            case "(":
                return self.group(depth)
            case "[":
                return Chars(self.members(0))
            case ".":
                return Chars(bool if "s" in self.flags else lambda char: char not in "\n\r")
            case "^" | "$":
                return Assertion(ASSERTIONS[f"m{char}" if "m" in self.flags else char])
            case "\\":
                return self.escaped()
            case "*" | "+" | "?" | "{" | ")":
                raise self.wrong(f"Expected something to match, but found '{char}'")
            case _:
                return Chars(self.cased(char.__eq__))

    def group(self, depth: int) -> Group:
        if depth >= GROUPS_NESTED_MAX:
            raise self.wrong(f"Expected at most {GROUPS_NESTED_MAX} levels of groups")
        number = 0
        if not self.skipped("?:"):
            if self.peek() == "?":
                raise self.wrong("Expected '(?:' or a plain group")
            self.groups += 1
            number = self.groups
        inside = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.wrong("Expected ')'")
        self.at += 1
        return Group(number, inside)

    # --- characters ---------------------------------------------------------------------------

    def cased(self, test: CharTest) -> CharTest:
        if "i" not in self.flags:
            return test
        return lambda char: test(char) or test(char.lower()) or test(char.upper())

    def escaped(self) -> Any:
        char = self.text[self.at : self.at + 1]
        if char and char in "bB":
            self.at += 1
            return Assertion(ASSERTIONS[char])
        if char and char in "123456789":
            raise self.wrong("References back to a group are refused")
        found = self.escape()
        return Chars(self.cased(found.__eq__ if isinstance(found, str) else found))

    def escape(self) -> str | CharTest:
        """What a backslash stands for: a character, or a kind of characters."""
        char = self.take()
        if char in CLASSES:
            return CLASSES[char]
        if char in CONTROLS:
            return CONTROLS[char]
        if char in "pP":
            end = self.text.find("}", self.at)
            if not self.skipped("{") or end < 0:
                raise self.wrong("Expected a category such as '{L}'")
            name, self.at = self.text[self.at : end], end + 1
            return _category(name) if char == "p" else _not(_category(name))
        if char.isalnum():
            raise self.wrong(f"No escape '\\{char}'")
        return char

    def members(self, depth: int) -> CharTest:
        """What is in square brackets, after the first of them."""
        if depth >= GROUPS_NESTED_MAX:
            raise self.wrong(f"Expected at most {GROUPS_NESTED_MAX} levels of brackets")
        negated = self.skipped("^")
        tests: list[CharTest] = []
        single: set[str] = set()
        without: CharTest | None = None
        first = True
        while first or not self.text.startswith("]", self.at):
            first = False
            if (tests or single) and self.skipped("-["):
                without = self.members(depth + 1)
                break
            low = self.member()
            if callable(low):
                tests.append(low)
            elif self.ranged():
                self.at += 1
                tests.append(_between(low, self.range_end(low)))
            else:
                single.add(low)
        if not self.skipped("]"):
            raise self.wrong("Expected ']'")

        among = self.cased(lambda char: char in single or any(test(char) for test in tests))

        def inside(char: str) -> bool:
            return among(char) != negated and not (without is not None and without(char))

        return inside

    def ranged(self) -> bool:
        """Whether a range of characters goes on here; a dash at the end is only a dash."""
        dash, following = self.text[self.at : self.at + 1], self.text[self.at + 1 : self.at + 2]
        return dash == "-" and following not in ("]", "[", "")

    def range_end(self, low: str) -> str:
        high = self.member()
        if callable(high) or high < low:
            raise self.wrong(f"Expected a character from '{low}' on")
        return high

    def member(self) -> str | CharTest:
        char = self.take()
        return self.escape() if char == "\\" else char


def _between(low: str, high: str) -> CharTest:
    return lambda char: low <= char <= high


BLOCKS = {
    "BasicLatin": ("\0", "\x7f"),
    "Latin-1Supplement": ("\x80", "\xff"),
    "LatinExtended-A": ("\u0100", "\u017f"),
    "Greek": ("\u0370", "\u03ff"),
    "Cyrillic": ("\u0400", "\u04ff"),
    "Hebrew": ("\u0590", "\u05ff"),
    "Arabic": ("\u0600", "\u06ff"),
    "CJKUnifiedIdeographs": ("\u4e00", "\u9fff"),
}  # fmt: skip  (of Unicode: the common ones)


def _category(name: str) -> CharTest:
    if name.startswith("Is") and name[2:] in BLOCKS:
        return _between(*BLOCKS[name[2:]])
    if name[:1] not in tuple("LMNPZSC") or len(name) > 2:
        raise Problem(f"No category of characters '{name}'")
    return lambda char: category(char).startswith(name)


def _compact(text: str) -> str:
    """A pattern without the spaces that are for the reader: all but those in square brackets."""
    kept: list[str] = []
    depth, escaped = 0, False
    for char in text:
        if depth or not _space(char):
            if not escaped:
                depth = max(0, depth + (char == "[") - (char == "]"))
            escaped = char == "\\" and not escaped
            kept.append(char)
    return "".join(kept)


def read_pattern(text: str, flags: str) -> tuple[Any, int]:
    """The parts of a pattern and how many groups it has; a Problem when it is none."""
    if len(text) > PATTERN_CHARS_MAX:
        raise Problem(f"Expected a pattern of at most {PATTERN_CHARS_MAX} characters")
    if set(flags) - set("smixq"):
        raise Problem(f"Expected flags of 'smixq', but found '{shown(flags)}'")
    reader = _Reader(_compact(text) if "x" in flags and "q" not in flags else text, flags)
    if "q" in flags:
        return Sequence([Chars(reader.cased(char.__eq__)) for char in text]), 0
    part = reader.alternatives(0)
    if reader.at < len(reader.text):
        raise reader.wrong("Expected no ')'")
    return part, reader.groups
