"""docs/reference/feel.md: the language of expressions, from its grammar, bounds and built-ins."""

from typing import Any

from generator import markdown
from generator.markdown import code, first_line, prose, table
from generator.source import constants_of
from generator.units import value_text
from holdfast.model.feel import bounds, parse, pattern_syntax
from holdfast.model.feel.builtins import BUILTINS, SUBJECTS, Builtin
from holdfast.model.feel.grammar import RESERVED
from holdfast.model.feel.reader import REFUSED
from holdfast.model.feel.run import Run
from holdfast.model.feel.text import text_of
from holdfast.model.feel.values import KINDS

_VARIABLES: dict[str, Any] = {
    "total": 120,
    "order": {"customer": "Ann", "items": [{"price": 10}, {"price": 30}]},
    "first name": "Ann",
}

# The results are worked out when the page is written.
_GRAMMAR: tuple[tuple[str, str, str], ...] = (
    ("a variable", "total", "null, with a warning, if there is none"),
    ("a name with spaces", "`first name`", "in backticks; without them it is an error"),
    ("an entry", "order.customer", ""),
    ("the entry of each item", "order.items.price", "over a list the path goes into each"),
    ("arithmetic", "(total + 30) * 2 / 3 - 1", ""),
    ("a power", "2 ** 10", ""),
    ("a comparison", "total >= 100", "`=` `!=` `<` `<=` `>` `>=`"),
    ("between", "total between 100 and 200", "both ends included"),
    ("in a range", "total in [100..200)", "a round bracket leaves its end out"),
    ("in a list of tests", "total in (<10, 50, >100)", "true if one of them holds"),
    ("logic", "total > 100 and not(total > 1000)", "of three values: true, false, null"),
    ("a condition", 'if total > 100 then "review" else "pack"', ""),
    ("a list", "[1, 2, 3]", ""),
    ("an item", "[10, 20, 30][-1]", "counted from 1, from the end with a minus"),
    ("a filter", "order.items[price > 20]", "`item` is the item itself"),
    ("a context", "{net: 100, tax: net * 0.19}", "later entries see earlier ones"),
    ("for", "for i in 1..3, j in [10, 20] return i * j", "the last name turns fastest"),
    ("some, every", "every i in order.items satisfies i.price > 5", ""),
    ("a function", "(function(a, b) a + b)(1, 2)", ""),
    ("a type", "total instance of number", ""),
    ("a range with one end", "total in (>= 100)", "a value too: it can be kept and passed on"),
    ("a date", '@"2026-01-31" + @"P1M"', "`@` before a text reads it as a time"),
    ("a part of a date", '@"2026-01-31".month', ""),
    ("a text", '"a" + "b"', "`+` joins texts"),
    ("a comment", "1 /* one */ + 1 // two", ""),
)

_VALUES = {
    "null": ("null", "what is not there, and what could not be worked out"),
    "boolean": ("true", ""),
    "number": ("0.1 + 0.2", "decimal with 34 digits, exact where they are enough"),
    "string": ('"text"', "Unicode"),
    "list": ("[1, 2]", ""),
    "context": ("{a: 1}", "names with values; a JSON object"),
    "date": ('@"2026-01-31"', "in JSON a text; years from -999999999 to 999999999"),
    "time": ('@"10:30:00@Europe/Paris"', "in JSON a text; up to nanoseconds"),
    "date and time": ('@"2026-01-31T10:30:00Z"', "in JSON a text"),
    "days and time duration": ('@"P1DT2H"', "in JSON a text"),
    "years and months duration": ('@"P1Y2M"', "in JSON a text"),
    "range": ("[1..5)", "not in JSON: it cannot be a variable"),
    "function": ("function(a) a + 1", "not in JSON: it cannot be a variable"),
}

_LEFT_OUT = (
    ("names with spaces that are not in backticks", "which words are one name would depend on the"
     " variables"),
    ("decision tables, boxed expressions, unary tests as a whole expression",
     "they belong to DMN, which is not here"),
    ("functions of other languages (`external`)", "an expression runs inside the engine"),
)  # fmt: skip


def page() -> str:
    """Grammar, values, limits, built-ins."""
    assert set(_VALUES) == set(KINDS.values()), "a kind of value is missing in generator/feel.py"
    values = [(name, code(text), _result(text), note) for name, (text, note) in _VALUES.items()]
    limits = [
        (code(field.name), value_text(field.name, getattr(bounds, field.name)), field.comment)
        for field in constants_of(bounds)
    ]
    return markdown.page(
        "FEEL",
        "The expression language of DMN, in conditions, mappings, correlation keys, collections and"
        " timers. In BPMN files an expression begins with `=` where a plain text could stand as"
        " well; conditions, keys and collections are always expressions. In Python the `=` may be"
        " left out there.",
        "An expression that has no value gives null and a warning that says why and where; it does"
        " not fail, unless it asks for that with `assert`. A condition that is null does not hold."
        " Where null will not do, as for a collection or a correlation key, the token stops at an"
        " incident that says what was found."
        " A text that is no expression is refused when the process is deployed.",
        "## Grammar",
        f"The variables here are `{_shown(_VARIABLES)}`.",
        table(
            ("", "Expression", "Result", "Note"),
            [(what, _code(text), _result(text), note) for what, text, note in _GRAMMAR],
        ),
        "Operators from the weakest to the strongest: `or`; `and`; comparisons, `between`, `in`,"
        " `instance of`; `+` `-`; `*` `/`; `**`; the sign; paths, filters and calls. `if`, `for`,"
        " `some`, `every` and `function` reach as far to the right as they can. Words that no"
        f" variable can have as its name outside of backticks: {', '.join(map(code, RESERVED))}.",
        "## Values",
        table(("Type", "Expression", "As text", "Note"), values),
        "Comparing values of different types gives null, with a warning; comparing with null for"
        " equality gives true or false. JSON numbers become decimals of up to 34 digits; `2.0` is"
        " the whole number 2.",
        "A timer works in milliseconds, in the years 1 to 9999. `24:00:00` is midnight of the next"
        " day.",
        "## Limits",
        prose(bounds.__doc__),
        table(("Limit", "Value", "Why"), limits),
        "In a process, the expressions of an element share the steps: all its mappings together, or"
        " all conditions of a gateway. An evaluation that reaches a limit fails, with an error that"
        " names the limit and the place in the expression. In a process the token stops there, at"
        " an incident; change the variables or migrate to a version with another expression, and"
        " resolve it. Work that needs more belongs into a task.",
        "## Regular expressions",
        f"In `matches`, `replace`, `split` and `extract`. {prose(pattern_syntax.__doc__)} Matching"
        " takes time in proportion to the text, whatever the pattern; its work counts.",
        "## Built-in functions",
        "A type with `?` may be left out or null; `...` stands for any number of arguments."
        ' Arguments may be named: `substring(string: "abc", start position: 2)`. Where a parameter'
        " has several names, with `/` between them, a call uses the first ones, or the second, and"
        " so on. Of a count or a position only the whole part counts. Every example is a test.",
        *_builtins(),
        "## What is left out",
        table(
            ("What", "Why"),
            [*((code(f"{name}()"), why) for name, why in REFUSED.items()), *_LEFT_OUT],
        ),
    )


def _builtins() -> list[str]:
    rows: dict[str, list[Builtin]] = {}
    for each in (row for found in BUILTINS.values() for row in found):
        rows.setdefault(each.subject, []).append(each)
    parts: list[str] = []
    for subject in SUBJECTS:
        name = subject.__name__.rpartition(".")[2]
        parts += [
            f"### {name.capitalize()}",
            first_line(subject.__doc__),
            table(
                ("Function", "", "Example", "Result"),
                [
                    (_code(each.signature), each.description, _code(each.example),
                     _code(each.result))
                    for each in rows[name]
                ],
            ),
        ]  # fmt: skip
    return parts


def _result(text: str) -> str:
    return _code(_shown(parse(text).evaluate(_VARIABLES, 0)))


def _shown(value: Any) -> str:
    return text_of(Run({}, 0, None, [], 0), value, 1)


def _code(text: str) -> str:
    """Code that may have backticks in it."""
    return f"`` {text} ``" if "`" in text else code(text)
