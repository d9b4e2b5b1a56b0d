"""Expressions that would take a machine's time or memory, were it not for the budget.

Each is evaluated and its value written as JSON, which is what the engine does with it. Most end in
an error that names a limit; some have a value, since they only look dangerous.
"""

from decimal import Decimal
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any, NamedTuple

from holdfast.model.feel import FeelError, decode_json, encode_json, parse

MEGABYTE = "x" * 1_000_000
THREE_MEGABYTES = "ab" * 1_500_000
MANY = 10**9

# Doubled 19 times, the last within the limit on one string.
DOUBLED = "s0: s, " + ", ".join(f"s{i}: s{i - 1} + s{i - 1}" for i in range(1, 20))
LAUGHS = "a0: [1, 1], " + ", ".join(f"a{i}: [a{i - 1}, a{i - 1}]" for i in range(1, 60))
TALL = "a0: [1], " + ", ".join(f"a{i}: [a{i - 1}]" for i in range(1, 400))
HUNDRED = ", ".join(["1"] * 100)
WIDE = " and ".join(["n > 1"] * 2_000)
GROUPS = "(a)" * 300
NUMBERS = "for i in 1..100000 return i"
FORKED = "function(f, n) if n = 0 then 0 else f(f, n - 1) + f(f, n - 1)"


class Bomb(NamedTuple):
    """What it tries to do, the expression, and the variables it is given."""

    what: str
    text: str
    variables: dict[str, Any] = {}  # noqa: RUF012  (read only)


BOMBS = [
    # --- loops --------------------------------------------------------------------------------
    Bomb("a long loop", f"for i in 1..{MANY} return i"),
    Bomb("a long loop down", f"for i in {MANY}..1 return i"),
    Bomb("a long range", f"for i in [1..{MANY}] return i"),
    Bomb("loops in loops", "for i in 1..9999, j in 1..9999, k in 1..9999 return 1"),
    Bomb("a search without end", f"some i in 1..{MANY} satisfies i < 0"),
    Bomb("a proof without end", f"every i in 1..{MANY} satisfies i > 0"),
    Bomb("a filter in a filter", f"{{xs: {NUMBERS}, ys: xs[count(xs[item > 5]) > 1]}}.ys"),
    Bomb("a list of all lists before", "for i in 1..100000 return partial"),
    Bomb("a long body in a loop", f"for i in 1..100000 return {WIDE}", {"n": 5}),
    Bomb("contexts in a loop", "for i in 1..1000000 return {a: i, b: {c: i}}"),
    Bomb("lists in a loop", f"for i in 1..1000000 return [{HUNDRED}]"),
    Bomb("decimals in a loop", "for i in 1..1000000 return i / 3"),
    Bomb("days in a loop", 'for d in @"0001-01-01"..@"9999-12-31" return d'),
    Bomb("a warning in a loop", f"for i in 1..{MANY} return nobody + 1"),
    Bomb("functions in a loop", "for i in 1..1000000 return function(a) a + i"),
    # --- functions ----------------------------------------------------------------------------
    Bomb("a function that calls itself", "(function(f) f(f))(function(f) f(f))"),
    Bomb("a function that forks", f"{{f: {FORKED}, x: f(f, 20)}}.x"),
    Bomb("a function in a sort", f"sort({NUMBERS}, function(a, b) modulo(a * 7919, 999) < b)"),
    Bomb("a sort that contradicts itself", f"sort({NUMBERS}, function(a, b) true)"),
    Bomb("a replacement by function", "list replace(xs, function(a, b) count(xs[item > a]) > b, 0)",
         {"xs": list(range(100_000))}),
    # --- texts --------------------------------------------------------------------------------
    Bomb("a string doubled without end", "{" + DOUBLED + ", s20: s19 + s19, s21: s20 + s20}",
         {"s": "abcdefgh"}),
    Bomb("a doubled string joined often",
         "{" + DOUBLED + ', r: string join(for i in 1..100000 return s19, ",")}.r', {"s": "a"}),
    Bomb("a doubled string kept often",
         "{" + DOUBLED + ", r: for i in 1..100000 return s19}.r", {"s": "a"}),
    Bomb("a string that grows in a loop", "for i in 1..100000 return s + string(i)",
         {"s": MEGABYTE[:900_000]}),
    Bomb("a wide string that grows", "for i in 1..100000 return s + s", {"s": "\N{BAT}" * 400_000}),
    Bomb("contains in a loop", 'for i in 1..100000 return contains(s, "b!")',
         {"s": THREE_MEGABYTES}),
    Bomb("contains that nearly matches", "for i in 1..100000 return contains(s, t)",
         {"s": "a" * 3_000_000, "t": "a" * 49 + "b" + "a" * 49}),
    Bomb("string length in a loop", "for i in 1..10000000 return string length(s)",
         {"s": THREE_MEGABYTES}),
    Bomb("number in a loop", "for i in 1..100000 return number(s)", {"s": "1" * 3_000_000}),
    Bomb("number that is none", "for i in 1..100000 return number(s)", {"s": "x" * 3_000_000}),
    Bomb("number with separators", 'for i in 1..100000 return number(s, ".", ",")',
         {"s": "1." * 1_500_000}),
    Bomb("capitals in a loop", "for i in 1..100000 return upper case(s)",
         {"s": "\N{LATIN SMALL LETTER SHARP S}" * 300_000}),
    Bomb("substrings in a loop", "for i in 1..100000 return substring(s, 2)",
         {"s": THREE_MEGABYTES}),
    Bomb("what is before, in a loop", 'for i in 1..100000 return substring before(s, "!")',
         {"s": THREE_MEGABYTES + "!"}),
    Bomb("trimming in a loop", "for i in 1..100000 return trim(s)", {"s": " " * 3_000_000}),
    Bomb("blank in a loop", "for i in 1..100000 return is blank(s)", {"s": " " * 3_000_000}),
    Bomb("long texts compared in a loop", "count((for i in 1..500000 return i)[s = t])",
         {"s": THREE_MEGABYTES + "a", "t": THREE_MEGABYTES + "b"}),
    Bomb("long texts ordered in a loop", "some i in 1..10000000 satisfies s > t",
         {"s": THREE_MEGABYTES + "a", "t": THREE_MEGABYTES + "b"}),
    Bomb("a text found in a list", "for i in 1..100000 return list contains(xs, s)",
         {"s": THREE_MEGABYTES, "xs": [THREE_MEGABYTES[:-1] + "c"] * 100}),
    Bomb("the text of a text of a text", "for i in 1..100000 return string([s, s])",
         {"s": MEGABYTE[:400_000]}),
    Bomb("the text of laughs", "string({" + LAUGHS + "})"),
    # --- regular expressions ------------------------------------------------------------------
    Bomb("a pattern with many ways", 'matches(s, "(a+)+(a|aa)*$")', {"s": "a" * 300_000 + "!"}),
    Bomb("a long pattern in a loop", "for i in 1..100000 return matches(string(i), p)",
         {"p": "(a{0,20}b{0,20}){0,40}"}),
    Bomb("another pattern each time",
         'for i in 1..100000 return matches("a", "a{0,900}" + string(i))'),
    Bomb("a wrong pattern each time",
         'for i in 1..100000 return matches("a", "(a{900}){900}" + string(i))'),
    Bomb("a pattern with many groups", f'for i in 1..1000 return replace(s, "{GROUPS}", "$1")',
         {"s": "a" * 30_000}),
    Bomb("a replacement that explodes", 'replace(s, "", s)', {"s": MEGABYTE[:20_000]}),
    Bomb("a replacement of groups", 'replace(s, "(a*)", t)',
         {"s": "a" * 20_000, "t": "$1" * 500_000}),
    Bomb("a split into everything", 'for i in 1..1000 return split(s, "b")',
         {"s": "ab" * 20_000}),
    Bomb("an extract of everything", 'for i in 1..1000 return extract(s, "a")',
         {"s": "a" * 20_000}),
    # --- lists and contexts -------------------------------------------------------------------
    Bomb("laughs compared", "{" + LAUGHS + "}.a59 = {" + LAUGHS + "}.a59"),
    Bomb("laughs flattened", "flatten({" + LAUGHS + "}.a59)"),
    Bomb("laughs told apart", "distinct values([{" + LAUGHS + "}])"),
    Bomb("laughs written", "{" + LAUGHS + "}"),
    Bomb("a tower compared", "{" + TALL + "}.a399 = {" + TALL + "}.a399"),
    Bomb("a tower as text", "string({" + TALL + "})"),
    Bomb("a list doubled without end",
         "{a0: xs, " + ", ".join(f"a{i}: concatenate(a{i - 1}, a{i - 1})" for i in range(1, 40))
         + "}.a39", {"xs": [1, 2]}),
    Bomb("appending in a loop", "for i in 1..100000 return append(xs, i)",
         {"xs": list(range(100_000))}),
    Bomb("inserting in a loop", "for i in 1..100000 return insert before(xs, 1, i)",
         {"xs": list(range(100_000))}),
    Bomb("unions in a loop", "for i in 1..100000 return union(xs, [i])",
         {"xs": list(range(100_000))}),
    Bomb("counting in a loop", "for i in 1..1000000 return count(xs)",
         {"xs": list(range(500_000))}),
    Bomb("sorting in a loop", "for i in 1..1000 return sort(xs)",
         {"xs": [i * 7_919 % 100_003 for i in range(100_000)]}),
    Bomb("contexts that grow", 'for i in 1..100000 return context put(c, "k", i)',
         {"c": {f"k{i}": i for i in range(50_000)}}),
    Bomb("entries in a loop", "for i in 1..1000 return get entries(c)",
         {"c": {f"k{i}": i for i in range(50_000)}}),
    Bomb("an average in a loop", "for i in 1..1000 return stddev(xs)",
         {"xs": [Decimal(i) / 7 for i in range(10_000)]}),
    # --- numbers and times --------------------------------------------------------------------
    Bomb("a power", "10 ** 999999999999"),
    Bomb("powers in a loop", "for i in 1..1000000 return 1.0000001 ** (i + 0.5)"),
    Bomb("roots and logarithms", "for i in 1..1000000 return log(exp(sqrt(i)))"),
    Bomb("digits without end", "for i in 1..1000000 return decimal(i / 7, 6000)"),
    Bomb("a product", "product(for i in 1..1000000 return i)"),
    Bomb("a number of many digits", "for i in 1..100000 return x * x + 1",
         decode_json(b'{"x": 1.' + b"1" * 1_000_000 + b"}")),
    Bomb("zones in a loop",
         'for i in 1..1000000 return date and time("2026-01-01T00:00:00@Europe/Paris") + @"P1D"'),
    Bomb("zones that are none",
         'for i in 1..1000000 return time("10:00:00@No/Where" + string(i))'),
    Bomb("ranges from texts", 'for i in 1..1000000 return range("[1.." + string(i) + "]")'),
    Bomb("ranges of one end", "for i in 1..1000000 return (< i)"),
    Bomb("far years", 'for i in 1..1000000 return @"262142-12-31T10:00:00Z" + @"P1D"'),
    Bomb("nanoseconds", 'for i in 1..1000000 return @"PT0.000000001S" * i'),
    Bomb("a text that is nearly a range", "for i in 1..1000000 return range(s)",
         {"s": "[" + "1." * 480}),
    Bomb("assertions in a loop", "for i in 1..100000000 return assert(i, true)"),
    Bomb("durations of many digits", "for i in 1..100000 return duration(s)",
         {"s": "P" + "1" * 1_000_000 + "D"}),
]  # fmt: skip


def outcome(bomb: Bomb) -> str:
    """What becomes of a bomb: the error, or how long its value is as JSON."""
    try:
        value = parse(bomb.text).evaluate(bomb.variables, 0, [])
        return f"{len(encode_json(value))} bytes"
    except FeelError as error:
        return error.message


def took(bomb: Bomb) -> float:
    """The seconds of the processor that a bomb takes."""
    begun = process_time()
    outcome(bomb)
    return process_time() - begun


def main() -> None:
    """What each bomb takes, and by how many megabytes all of them made the process grow."""
    for bomb in BOMBS:
        parse(bomb.text)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    for bomb in BOMBS:
        seconds = took(bomb)
        for _ in range(3):  # the machine is shared: the quickest counts
            if seconds > 0.2:
                seconds = min(seconds, took(bomb))
        print(f"{seconds:.3f} {bomb.what}")
    print((getrusage(RUSAGE_SELF).ru_maxrss - before) // 1024)


if __name__ == "__main__":
    main()
