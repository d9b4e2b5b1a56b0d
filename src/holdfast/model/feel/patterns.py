"""Regular expressions that take a time in proportion to the text, whatever the pattern.

Python's `re` tries one way after the other, and some patterns have more ways than time. Here all
ways go through the text side by side, one character at a time (a Pike machine): the work is at most
the length of the text times that of the program, and is counted against the evaluation's bound.
Where `re` and this one both end, they find the same: the leftmost match, and of those the one that
the pattern prefers.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from holdfast.model.feel.bounds import PATTERN_CHARS_MAX, PATTERN_STEPS_MAX, PATTERNS_CACHED_MAX
from holdfast.model.feel.pattern_syntax import (
    Assertion,
    Branch,
    Chars,
    Group,
    Part,
    Repeat,
    Sequence,
    read_pattern,
)
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import CHARS_PER_STEP, Run

WAY_STEPS = 5  # one way through one character
STEP_STEPS, STEP_BYTES = 12, 120  # reading an instruction of a pattern, and keeping it


class Step(NamedTuple):
    """One instruction: take a character, or go on elsewhere."""

    kind: str  # take, split, jump, save, assert, match
    test: Callable[..., bool] | None = None
    to: int = 0
    other: int = 0
    early: bool = True  # of a split: whether the first way is preferred


def _character(step: Step) -> str:
    """The character that an instruction takes, if it takes one and no other."""
    found = getattr(step.test, "__self__", "") if step.kind == "take" else ""
    return found if isinstance(found, str) else ""


class Pattern:
    """A compiled regular expression."""

    __slots__ = ("first", "groups", "steps")

    def __init__(self, steps: list[Step], groups: int) -> None:
        self.steps = steps
        self.groups = groups
        self.first = _character(steps[1])  # that every match begins with; none if there are more

    def search(self, run: Run, text: str, start: int) -> tuple[int, ...] | None:
        """The spans of the first match from a position on, and of its groups; -1 is none."""
        fresh = (-1,) * (2 * self.groups + 2)
        weight = WAY_STEPS + self.groups // 4  # each way has its spans with it
        best: tuple[int, ...] | None = None
        ways: list[tuple[int, tuple[int, ...]]] = []
        at = start - 1
        while at < len(text):
            at += 1
            if self.first and not ways and best is None:  # nothing before it can begin a match
                found_at = text.find(self.first, at)
                run.spend(((found_at if found_at >= 0 else len(text)) - at) // CHARS_PER_STEP)
                if found_at < 0:
                    return None
                at = found_at
            seen: set[int] = set()
            now: list[tuple[int, tuple[int, ...]]] = []
            for step, spans in ways:
                self._follow(step, spans, text, at, seen, now)
            if best is None:
                self._follow(0, fresh, text, at, seen, now)
            elif not now:
                break
            run.spend(weight * (1 + len(seen)))
            ways = []
            for step, spans in now:
                found = self.steps[step]
                if found.kind == "match":
                    best = spans
                    break  # the ways behind it are less preferred
                if at < len(text) and found.test is not None and found.test(text[at]):
                    ways.append((step + 1, spans))
        return best

    def _follow(
        self,
        step: int,
        spans: tuple[int, ...],
        text: str,
        at: int,
        seen: set[int],
        now: list[tuple[int, tuple[int, ...]]],
    ) -> None:
        """Add what a way comes to without taking a character, the preferred first."""
        waiting = [(step, spans)]
        while waiting:
            step, spans = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            found = self.steps[step]
            match found.kind:
                case "jump":
                    waiting.append((found.to, spans))
                case "split":
                    first, second = (
                        (found.to, found.other) if found.early else (found.other, found.to)
                    )
                    waiting += [(second, spans), (first, spans)]
                case "save":
                    saved = (*spans[: found.to], at, *spans[found.to + 1 :])
                    waiting.append((step + 1, saved))
                case "assert":
                    assert found.test is not None
                    if found.test(text, at):
                        waiting.append((step + 1, spans))
                case _:
                    now.append((step, spans))


class _Writer:
    """Writes the program of a pattern."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, step: Step) -> int:
        if len(self.steps) >= PATTERN_STEPS_MAX:
            raise Problem(f"The pattern takes more than {PATTERN_STEPS_MAX} steps")
        self.steps.append(step)
        return len(self.steps) - 1

    def write(self, part: Part) -> None:
        """The steps of a part, behind those that are there."""
        match part:
            case Chars(test=test):
                self.add(Step("take", test))
            case Assertion(test=test):
                self.add(Step("assert", test))
            case Sequence(parts=parts):
                for each in parts:
                    self.write(each)
            case Group(number=number, inside=inside):
                if number:
                    self.add(Step("save", to=2 * number))
                self.write(inside)
                if number:
                    self.add(Step("save", to=2 * number + 1))
            case Branch(ways=ways):
                self.branch(ways)
            case Repeat():
                self.repeat(part)

    def branch(self, ways: list[Any]) -> None:
        ends: list[int] = []
        for way in ways[:-1]:
            split = self.add(Step("split"))
            self.write(way)
            ends.append(self.add(Step("jump")))
            self.steps[split] = Step("split", to=split + 1, other=len(self.steps))
        self.write(ways[-1])
        for end in ends:
            self.steps[end] = Step("jump", to=len(self.steps))

    def repeat(self, part: Repeat) -> None:
        """The part as often as it must be, then as often as it may."""
        for _ in range(part.least):
            self.write(part.inside)
        if part.most is None:
            split = self.add(Step("split"))
            self.write(part.inside)
            self.add(Step("jump", to=split))
            self.skip([split], part.greedy)
            return
        splits: list[int] = []
        for _ in range(part.most - part.least):
            splits.append(self.add(Step("split")))
            self.write(part.inside)
        self.skip(splits, part.greedy)

    def skip(self, splits: list[int], greedy: bool) -> None:
        for split in splits:
            self.steps[split] = Step("split", None, split + 1, len(self.steps), greedy)


def pattern_of(run: Run, text: str, flags: str) -> Pattern:
    """The compiled form of a regular expression; a Problem when it is none.

    An evaluation pays once for each, whether or not another one has left it in the cache.
    """
    try:
        known = run.patterns
    except AttributeError:
        known = run.patterns = {}
    found = known.get((text, flags))
    if found is not None:
        return found
    run.spend(STEP_STEPS * min(len(text) + len(flags), PATTERN_CHARS_MAX))
    try:
        found = known[text, flags] = _compiled(text, flags)
    except Problem:
        run.spend(STEP_STEPS * PATTERN_STEPS_MAX if "{" in text else 0)
        raise
    run.spend(STEP_STEPS * len(found.steps), STEP_BYTES * len(found.steps))
    return found


@lru_cache(maxsize=PATTERNS_CACHED_MAX)
def _compiled(text: str, flags: str) -> Pattern:
    part, groups = read_pattern(text, flags)
    writer = _Writer()
    writer.add(Step("save", to=0))
    writer.write(part)
    writer.add(Step("save", to=1))
    writer.add(Step("match"))
    return Pattern(writer.steps, groups)
