"""Processes that would disable a node, and what becomes of each: one table.

A bomb is written as its elements and its flows: `"s > x > f > x; f > x"`.
"""

from typing import NamedTuple

from holdfast.model.definition import (
    Definition,
    Element,
    ElementKind,
    Flow,
    JobSpec,
    Loop,
    Message,
    Timer,
    TimerKind,
)

K = ElementKind

HELD = "held"  # an incident LOOP_LIMIT that names the loop
LIMIT = "limit"  # an incident LIMIT_REACHED
ENDS = "ends"
WAITS = "waits"  # for workers, messages or times, with a bounded number of tokens


class Bomb(NamedTuple):
    """What is deployed, the first of it started, and what is to be seen then."""

    name: str
    definitions: tuple[Definition, ...]
    outcome: str
    loop: str = ""  # what the incident says
    seconds: float = 0  # how much time has to pass


def process(id_: str, elements: list[Element], flows: str) -> Definition:
    """A process with a start `s`; flows are chains of ids."""
    pairs = [
        (a.strip(), b.strip())
        for chain in flows.split(";")
        for a, b in zip(chain.split(">"), chain.split(">")[1:], strict=False)
    ]
    forks = {each.id for each in elements if each.kind is K.INCLUSIVE}
    conditions = {a: "true" for a in forks if sum(a == source for source, _ in pairs) > 1}
    ways = tuple(
        Flow(f"f{number}", a, b, conditions.get(a, "")) for number, (a, b) in enumerate(pairs)
    )
    return Definition(id_, (Element("s", K.START), *elements), ways)


def exclusive(id_: str = "x", scope: str = "") -> Element:
    return Element(id_, K.EXCLUSIVE, scope=scope)


def fork(id_: str = "f", scope: str = "") -> Element:
    return Element(id_, K.PARALLEL, scope=scope)


def none(id_: str, scope: str = "", loop: Loop | None = None) -> Element:
    return Element(id_, K.PASS, scope=scope, loop=loop)


def script(id_: str, expression: str, result: str = "n", loop: Loop | None = None) -> Element:
    return Element(id_, K.EXPRESSION, expression=expression, result=result, loop=loop)


def job(id_: str, scope: str = "", loop: Loop | None = None) -> Element:
    return Element(id_, K.JOB, scope=scope, job=JobSpec("nobody"), loop=loop)


def call(id_: str, process_id: str, loop: Loop | None = None, scope: str = "") -> Element:
    return Element(id_, K.CALL, called=process_id, loop=loop, scope=scope)


def sub(id_: str, scope: str = "", loop: Loop | None = None) -> Element:
    return Element(id_, K.SUBPROCESS, scope=scope, loop=loop)


def start(id_: str, scope: str) -> Element:
    return Element(id_, K.START, scope=scope)


def end(id_: str, scope: str = "", error: str | None = None, terminate: bool = False) -> Element:
    return Element(id_, K.END, scope=scope, error=error, terminate=terminate)


def wait(id_: str, span: str) -> Element:
    return Element(id_, K.CATCH, timer=Timer(TimerKind.DURATION, span))


def boundary(id_: str, host: str, span: str = "", error: str | None = None) -> Element:
    timer = Timer(TimerKind.DURATION, span) if span else None
    return Element(id_, K.BOUNDARY, host=host, timer=timer, error=error)


def over(count: str, *, sequential: bool = False) -> Loop:
    return Loop(f"for i in 1..{count} return 0", "item", sequential)


def nested(depth: int) -> Definition:
    """Sub-processes in one another, in a loop."""
    elements, flows, scope = [exclusive()], ["s > x > u0 > x"], ""
    for level in range(depth):
        elements += [sub(f"u{level}", scope), start(f"s{level}", f"u{level}")]
        flows.append(f"s{level} > u{level + 1}")
        scope = f"u{level}"
    elements.append(none(f"u{depth}", scope))
    return process("p", elements, "; ".join(flows))


def wide(ways: int, back: str) -> Definition:
    """A fork with very many flows."""
    flows = "; ".join(f"f > {back}" for _ in range(ways))
    target = [end("e")] if back == "e" else []
    return process("p", [exclusive(), fork(), *target], f"s > x > f; {flows}")


def alone(name: str, elements: list[Element], flows: str, outcome: str, *rest: object) -> Bomb:
    return Bomb(name, (process("p", elements, flows),), outcome, *rest)  # type: ignore[arg-type]


_CHILD = process("q", [end("e")], "s > e")
_FAILS = process("q", [end("e", error="E")], "s > e")
_WORKS = process("q", [job("j")], "s > j")
_BIG = [
    exclusive(), script("v", '"' + "x" * 10_000 + '"', "v"),
    script("a", 'string join(for i in 1..50 return v, "")'),
]  # fmt: skip

_SUB_LOOP = [sub("u"), start("v", "u"), exclusive("x", "u"), fork("f", "u")]
_ITEMS = [
    sub("u", loop=over("1000")), start("v", "u"), job("j", "u", over("1000")),
]  # fmt: skip
_THREE = [
    sub("a", loop=over("1000")), start("sa", "a"), sub("b", "a", over("1000")),
    start("sb", "b"), none("c", "b", over("1000")),
]  # fmt: skip
_DOUBLING_ITEMS = [
    sub("u", loop=over("100")), start("v", "u"), exclusive("x", "u"), fork("f", "u"),
]  # fmt: skip
_ERRORS = [sub("u"), start("v", "u"), end("e", "u", error="E"), boundary("b", "u", error="E")]
_STOPS = [
    exclusive(), sub("u"), start("v", "u"), fork("f", "u"), none("a", "u"),
    end("e", "u", terminate=True),
]  # fmt: skip
_PILE = [
    job("j"),
    Element(
        "b", K.BOUNDARY, host="j", timer=Timer(TimerKind.CYCLE, "R/PT0.02S"), interrupting=False
    ),
    job("k"),
]
_TIMED_CALL = [exclusive(), call("c", "q"), boundary("b", "c", "PT0S")]
_GATE = [exclusive(), Element("g", K.EVENT_GATEWAY), wait("t", "PT0S"), wait("u", "PT1H")]
_RECEIVES = [exclusive(), Element("m", K.CATCH, message=Message("m", '"k"'))]
_OR = Element("o", K.INCLUSIVE)

BOMBS: tuple[Bomb, ...] = (
    alone("tokens double", [exclusive(), fork()], "s > x > f > x; f > x", HELD, "x -> f -> x"),
    alone("tokens triple", [exclusive(), fork()], "s > x > f > x; f > x; f > x", HELD, "x -> f"),
    alone("a task with two ways", [exclusive(), none("a")], "s > x > a > x; a > x", HELD, "a -> x"),
    alone("a fork that is inclusive", [exclusive(), _OR], "s > x > o > x; o > x", HELD, "x -> o"),
    alone("a loop of nothing", [exclusive(), none("a")], "s > x > a > x", HELD, "x -> a -> x"),
    alone("a loop of a script", [exclusive(), script("a", "1 + 1")], "s > x > a > x", HELD, "a"),
    alone("a loop of gateways", [exclusive(), exclusive("y")], "s > x > y > x", HELD, "x -> y"),
    alone("an inclusive join of itself", [_OR, none("a")], "s > o > a > o", HELD, "o"),
    alone(
        "a fork and its join", [exclusive(), fork(), none("a"), none("b"), fork("j")],
        "s > x > f > a > j > x; f > b > j", HELD, "f",
    ),
    alone(
        "a sub-process in a loop", [exclusive(), sub("u"), start("v", "u"), none("a", "u")],
        "s > x > u > x; v > a", HELD, "u",
    ),
    alone("doubling inside", _SUB_LOOP, "s > u; v > x > f > x; f > x", HELD, "x -> f -> x"),
    alone("errors in a circle", _ERRORS, "s > u; v > e; b > u", HELD, "u -> b -> u"),
    alone("terminating in a circle", _STOPS, "s > x > u > x; v > f > a; f > e", HELD, "x -> u"),
    Bomb("very deep sub-processes", (nested(19),), HELD, "u0"),
    Bomb("a fork of 2,000 ways", (wide(2_000, "e"),), ENDS),
    Bomb("a fork of 1,000 ways back", (wide(1_000, "x"),), HELD, "x -> f -> x"),
    alone("large variables in a loop", _BIG, "s > v > x > a > x", HELD, "x -> a"),
    alone("no time in a loop", [exclusive(), wait("t", "PT0S")], "s > x > t > x", HELD, "x -> t"),
    alone(
        "no time, and doubling", [exclusive(), wait("t", "PT0S"), fork()],
        "s > x > t > f > x; f > x", HELD, "f",
    ),
    alone(
        "little time, and doubling", [exclusive(), wait("t", "PT0.1S"), fork()],
        "s > x > t > f > x; f > x", HELD, "f", 5,
    ),
    alone("a cycle that piles up", _PILE, "s > j; b > k", HELD, "b", 300),
    alone(
        "a job that times out at once", [exclusive(), job("j"), boundary("b", "j", "PT0S")],
        "s > x > j; b > x", HELD, "b",
    ),
    alone("an event that comes at once", _GATE, "s > x > g > t > x; g > u > x", HELD, "x -> g"),
    alone("a message in a loop", _RECEIVES, "s > x > m > x", WAITS),
    Bomb(
        "a process that calls itself twice",
        (process("p", [fork(), call("a", "p"), call("b", "p")], "s > f > a; f > b"),),
        LIMIT, "p -> p",
    ),
    alone("a process that calls itself", [call("a", "p")], "s > a", LIMIT),
    Bomb(
        "two that call each other",
        (
            process("p", [fork(), call("a", "q"), call("b", "q")], "s > f > a; f > b"),
            process("q", [call("a", "p")], "s > a"),
        ),
        LIMIT, "p -> q",
    ),
    Bomb(
        "calls in a loop", (process("p", [exclusive(), call("c", "q")], "s > x > c > x"), _CHILD),
        HELD, "c",
    ),
    Bomb(
        "calls that fail in a loop",
        (process("p", [call("c", "q"), boundary("b", "c", error="E")], "s > c; b > c"), _FAILS),
        HELD, "c -> b",
    ),
    Bomb(
        "calls that time out at once", (process("p", _TIMED_CALL, "s > x > c; b > x"), _WORKS),
        HELD, "b",
    ),
    Bomb(
        "calls of itself for each item", (process("p", [call("c", "p", over("50"))], "s > c"),),
        LIMIT, "p -> p",
    ),
    Bomb(
        "calls of itself, one after another",
        (process("p", [call("c", "p", over("50", sequential=True))], "s > c"),), LIMIT,
    ),
    alone("very many items", [script("a", "1", loop=over("80000"))], "s > a", ENDS),
    alone(
        "very many items, one after another",
        [script("a", "1", loop=over("80000", sequential=True))], "s > a", ENDS,
    ),
    alone("items of items", _ITEMS, "s > u; v > j", WAITS),
    alone("items of items of items", _THREE, "s > a; sa > b; sb > c", HELD),
    alone("doubling in each item", _DOUBLING_ITEMS, "s > u; v > x > f > x; f > x", HELD, "x -> f"),
)  # fmt: skip
