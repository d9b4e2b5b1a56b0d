"""docs/reference/process-dsl.md: every word with its signature, its docstring and an example.

The examples are built when the page is written: one that is no process stops the generator.
"""

import ast
import inspect
from datetime import timedelta
from typing import Any

from generator import markdown
from generator.markdown import code, prose, table
from generator.source import Method, function_of, methods_of
from holdfast.model import dsl
from holdfast.model.dsl import values
from holdfast.model.dsl.path import Steps

_STEPS: dict[str, tuple[str, ...]] = {
    "Work": ("task", "compute", "sub", "call"),
    "Waiting": ("wait", "pause", "race"),
    "Several ways": ("choose", "include", "parallel"),
    "Ends": ("end", "fail", "terminate", "go_to"),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "Inside choose and include": ("when", "otherwise"),
    "Inside race": ("on_message", "after"),
    "Beside an activity: on=[...]": ("error", "timeout", "message", "every"),
    "Repeated: each=": ("over",),
    "Paths": ("path",),
}

_EXAMPLES = {
    "Process": 'Process("order", name="An order").task("charge").task("ship")',
    "starts": 'Process("order").starts(message="order-placed").starts().task("ship")',
    "definition": 'Process("order").task("ship").definition()',
    "task": 'Process("p").task("charge", retries=5, inputs={"amount": "order.total"})',
    "compute": 'Process("p").compute("tax", "round half up(total * 0.19, 2)", result="tax")',
    "sub": 'Process("p").sub("pay", path().task("charge").task("book"), on=[timeout("PT1H")])',
    "call": 'Process("p").call("bill", process="invoice", inputs={"amount": "total"})',
    "wait": 'Process("p").wait("paid", message="payment", key="order", within="P3D")',
    "pause": 'Process("p").pause("cool-down", timedelta(minutes=5)).pause("new-year",'
    ' until="2030-01-01T00:00:00Z")',
    "race": 'Process("p").race(on_message("paid", "payment", "order"),'
    ' after("late", "P3D", path().task("remind")))',
    "choose": 'Process("p").choose(when("total > 100", path().task("review")),'
    ' otherwise(path().task("pack")))',
    "include": 'Process("p").include(when("gift", path().task("wrap")),'
    ' when("total > 100", path().task("insure"))).task("ship")',
    "parallel": 'Process("p").parallel(path().task("pack"), path().task("invoice"))',
    "end": 'Process("p").choose(when("total = 0", path().end("nothing-to-do"))).task("charge")',
    "fail": 'Process("p").choose(when("total < 0", path().fail("refused", error="BAD_TOTAL")))',
    "terminate": 'Process("p").parallel(path().task("work"),'
    ' path().pause("deadline", "PT1H").terminate("too-late"))',
    "go_to": 'Process("p").task("try").choose(when("not(done)", path().go_to("try")))',
    "when": 'when("total > 100", path().task("review"), name="expensive")',
    "otherwise": 'otherwise(path().task("pack"))',
    "on_message": 'on_message("paid", "payment", "order", path().task("ship"))',
    "after": 'after("late", timedelta(days=3), path().task("remind"))',
    "error": 'error("DECLINED", path().task("ask-for-another-card"))',
    "timeout": 'timeout("PT10M", path().task("warn"), interrupting=False)',
    "message": 'message("order-canceled", path().end("canceled"), key="order")',
    "every": 'every("R3/P1D", path().task("remind"))',
    "over": 'over("order.items", item="line", collect="picked", result="parcel")',
    "path": 'path().task("pack").task("ship")',
}


def page() -> str:
    """The words by what they are for."""
    steps = {each.name: each for each in methods_of(Steps)}
    process = {each.name: each for each in methods_of(dsl.Process)}
    parts = ["## A process", _entry("Process", process["__init__"], dsl.Process.__doc__)]
    parts += [_entry(name, process[name], _doc(dsl.Process, name)) for name in
              ("starts", "definition")]  # fmt: skip
    for title, names in _STEPS.items():
        parts += [f"## {title}"]
        parts += [_entry(name, steps[name], _doc(Steps, name)) for name in names]
    for title, names in _WORDS.items():
        parts += [f"## {title}"]
        parts += [
            _entry(name, function_of(getattr(dsl, name)), getattr(dsl, name).__doc__)
            for name in names
        ]
    _all_said(set(steps) | set(process))
    return markdown.page(
        "Process DSL",
        "Processes in Python: steps in the order of their execution. Processes and paths are"
        " immutable: each call returns a new one. All names are in `holdfast`.",
        "```text\n" + _example() + "\n```",
        "A process is sent to the node as BPMN. Elements without an id get one: `charge` is"
        " followed by `charge-choice`, `charge-end` and so on. The same program gives the same"
        " definition,"
        " byte for byte, and so the same version.",
        "## What all steps share",
        prose(Steps.__doc__),
        table(("Type", "Meaning"), _types()),
        *parts,
    )


def _example() -> str:
    doc = inspect.cleandoc(dsl.__doc__ or "")
    return doc[doc.index("from ") :].replace("holdfast.model.dsl", "holdfast")


def _types() -> list[tuple[str, str]]:
    """The texts below the types in dsl/values.py."""
    tree = ast.parse(inspect.getsource(values))
    found: list[tuple[str, str]] = []
    for node, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.Assign) and isinstance(below, ast.Expr):
            assert isinstance(below.value, ast.Constant)
            found.append((code(ast.unparse(node.targets[0])), str(below.value.value)))
    return found


def _doc(kind: type[Any], name: str) -> str | None:
    return getattr(kind, name).__doc__


def _entry(name: str, method: Method, doc: str | None) -> str:
    signature = method.signature.replace("__init__", name).replace(" -> None", "")
    example = _EXAMPLES[name]
    built = eval(example, {**vars(dsl), "timedelta": timedelta})  # our own text, above
    if isinstance(built, dsl.Process):
        built.definition()
    text = f"### {name}\n\n```text\n{signature}\n```\n\n{_prose(doc)}"
    return f"{text}\n\n```text\n{example}\n```"


def _prose(doc: str | None) -> str:
    """A docstring without the examples in it: there is one of ours."""
    text = inspect.cleandoc(doc or "")
    kept = [part for part in text.split("\n\n") if not part.startswith((" ", "\t"))]
    return prose("\n\n".join(kept))


def _all_said(methods: set[str]) -> None:
    said = {name for names in (*_STEPS.values(), *_WORDS.values()) for name in names}
    functions = {name for name in dsl.__all__ if name[0].islower()}
    wanted = (methods - {"steps", "__init__"}) | functions
    missing = wanted - said - {"starts", "definition"}
    assert not missing, f"words are missing in docs/generator/process_dsl.py: {missing}"
