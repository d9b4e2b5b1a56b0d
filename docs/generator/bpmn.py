"""docs/reference/bpmn.md: what of BPMN runs, from the reader's own table, and models that ran."""

import sys

from generator import markdown
from generator.markdown import ROOT, code, table
from generator.source import members_of
from holdfast.model.bpmn.support import BESIDE, SUPPORT, Row, Verdict
from holdfast.model.bpmn.support_extensions import (
    ATTRIBUTES,
    EXTENSIONS,
    HARMLESS_ATTRIBUTES,
    HARMLESS_SPACES,
    MODELER_ATTRIBUTES,
)
from holdfast.model.definition import Definition, ElementKind

_PLAIN = {
    Verdict.RUNS: "Elements that run",
    Verdict.REFUSED: "Elements that are refused",
    Verdict.IGNORED: "Elements that are ignored",
    Verdict.SKIPPED: "Elements that are skipped",
}
_LEADS = {
    Verdict.RUNS: "A row with an event definition is about events with that definition.",
    Verdict.REFUSED: (
        "A file that has one is not deployed; the error names each of them with its line. Elements"
        " that are in no table here are refused as well."
    ),
    Verdict.IGNORED: (
        "A file that has one is deployed, and the response names each with its line in `ignored`:"
        " over HTTP, in what `app.deploy` returns, and as notes of `holdfast deploy`. An element in"
        " a place where nothing reads it is ignored as well."
    ),
    Verdict.SKIPPED: "They are for the reader of a diagram and are not reported.",
}


def page() -> str:
    """Every element, every extension, and the models that were tried."""
    parts: list[str] = []
    for verdict, title in _PLAIN.items():
        rows = [_row(row) for row in SUPPORT if row.holdfast is verdict]
        if verdict in BESIDE:
            parts += [f"## {title}", _LEADS[verdict], _by_reason(verdict)]
        else:
            columns = ("Element", "Event definition", "Zeebe 8", "Note")
            parts += [f"## {title}", _LEADS[verdict], table(columns, rows)]
    return markdown.page(
        "BPMN",
        "Files as Camunda Modeler saves them for Camunda 8: BPMN 2.0 with the `zeebe:` extensions."
        " The table on this page is the one that the code uses. The column about Zeebe tells what"
        " Zeebe 8 does with the same element, and since which version. It is kept by hand; nothing"
        " was compared by running Zeebe.",
        table(("Verdict", "Meaning"), _verdicts()),
        *parts,
        *_extensions(),
        *_models(),
    )


def _verdicts() -> list[tuple[str, str]]:
    comments = members_of(Verdict)
    return [(code(each), comments[each.name] or "it is executed") for each in Verdict]


def _row(row: Row) -> tuple[str, ...]:
    return code(row.element), code(row.event), row.zeebe, row.note


def _by_reason(verdict: Verdict) -> str:
    """Elements that do not run by the reason, which many share."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in SUPPORT:
        if row.holdfast is verdict:
            groups.setdefault((row.note, row.zeebe), []).append(code(row.element))
    rows = [(note, zeebe, ", ".join(names)) for (note, zeebe), names in groups.items()]
    return table(("Why", "Zeebe 8", "Elements"), rows)


def _extensions() -> list[str]:
    rows = [
        (code(f"zeebe:{name}"), row.holdfast.value, ", ".join(map(code, row.attributes)), row.note)
        for name, row in EXTENSIONS.items()
    ]
    attributes = [(*_attribute(name), why) for name, why in ATTRIBUTES.items()]
    return [
        "## Extension elements",
        "A `zeebe:` element that is not in the table is refused. One that runs and stands where"
        " nothing reads it, such as `zeebe:taskHeaders` in a gateway, is named as ignored; those"
        " that are refused are refused everywhere. What is of another maker's namespace is named"
        " as ignored, once for each namespace. `holdfast:result` names the variable that gets all"
        " of a job's result, as `result=` does in Python.",
        table(("Extension", "Here", "Attributes that run", "Note"), rows),
        "## Attributes",
        "Every attribute that nothing reads is named as ignored, whether or not it is in a table"
        " here, unless it has the value that the schema gives it anyway. The reason is one of"
        " these, or that nothing reads it in that element.",
        table(("Attribute", "Of", "Why it is ignored"), attributes),
        "What the tests find of the attributes of the schema, with another value than their"
        " default, in the elements that run:",
        _walk(),
        "Nothing is said about these, which are for the reader of a file or for a modeler: "
        + ", ".join(_harmless())
        + "; and about the namespaces of pictures, colours and modelers: "
        + ", ".join(code(space) for space in sorted(HARMLESS_SPACES))
        + ".",
    ]


def _walk() -> str:
    """What becomes of every attribute of the elements that run, as the tests find it."""
    _find_tests()
    from test_bpmn_schema import ATTRIBUTES_OF, attribute_outcomes

    tags = dict.fromkeys(row.element for row in SUPPORT if row.holdfast is Verdict.RUNS)
    rows: list[tuple[str, ...]] = []
    for tag in tags:
        by = attribute_outcomes(tag)
        for name in ("id", "default", *ATTRIBUTES_OF.get(tag, {})):
            if name in by and by[name] == "refused":
                by[name] = "runs"  # a reference, and the walk has nothing else to refer to
        columns = [
            ", ".join(code(name) for name, each in by.items() if each == outcome)
            for outcome in ("runs", "refused", "ignored", "silent")
        ]
        rows.append((code(tag), *columns))
    return table(("Element", "Runs", "Refused", "Ignored", "For the reader"), rows)


def _attribute(name: str) -> tuple[str, str]:
    """An attribute, and the element it is of."""
    element, _, attribute = name.rpartition(" ")
    return code(attribute), code(element) if element else "all that have it"


def _harmless() -> list[str]:
    plain = [
        f"{code(attribute)} of {code(element)}" if element else code(attribute)
        for element, _, attribute in (each.rpartition(" ") for each in sorted(HARMLESS_ATTRIBUTES))
    ]
    return [*plain, *(code(f"zeebe:{name}") for name in sorted(MODELER_ATTRIBUTES))]


# --- the models ---------------------------------------------------------------------------------


def _find_tests() -> None:
    """The tests know what was tried; they are imported from where they are."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "model" / "bpmn")]


def _models() -> list[str]:
    """The tables that the tests go by, so that the page cannot say what they do not."""
    _find_tests()
    from bpmn_files import model
    from miwg import READ, REFUSED, SOURCE
    from test_models_run import STORIES

    ways: dict[str, list[str]] = {}
    for story in STORIES:
        ways.setdefault(story.file, []).append(story.way)
    own = [
        (code(f"{name}.bpmn"), _counted(model(f"{name}.bpmn")), "; ".join(ways[name]))
        for name in sorted(ways)
    ]
    reference: list[tuple[str, ...]] = []
    for name in sorted((*READ, *REFUSED)):
        if name in READ:
            reference.append((code(f"{name}.bpmn"), "runs", READ[name].story))
        else:
            refused = REFUSED[name]
            where = f"line {refused.line}, `{refused.element}`: {refused.why}"
            reference.append((code(f"{name}.bpmn"), "refused", where))
    return [
        "## Models that were run",
        "Each file in `tests/model/bpmn/models` is deployed and run to its end in these ways by"
        " `tests/model/bpmn/test_models_run.py`, with workers for its jobs, in virtual time, on one"
        " partition and on three.",
        table(("File", "Elements", "Ways"), own),
        "### The reference models of the MIWG",
        f"The 21 reference models of the BPMN Model Interchange Working Group ({SOURCE}). They were"
        " made to see whether tools read each other's drawings; most were never meant to run, and"
        " leave open what a process would need to know. They are read together with those of their"
        " processes that are not marked executable, which `deploy` leaves out. Those that can be"
        " read are deployed and run to their end as well.",
        table(("File", "Here", "What happens, or the first thing that is refused"), reference),
    ]


def _counted(definition: Definition) -> str:
    """What a model is made of."""
    counts: dict[str, int] = {}
    for element in definition.elements:
        name = _NAMES.get(element.kind, element.kind.name.lower().replace("_", " "))
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}{_plural(name, count)}" for name, count in counts.items())


def _plural(name: str, count: int) -> str:
    return "" if count == 1 else "es" if name.endswith("s") else "s"


_NAMES = {
    ElementKind.CATCH: "wait",
    ElementKind.SUBPROCESS: "sub-process",
    ElementKind.PASS: "plain task",
    ElementKind.BOUNDARY: "boundary event",
    ElementKind.EXCLUSIVE: "exclusive gateway",
    ElementKind.INCLUSIVE: "inclusive gateway",
    ElementKind.PARALLEL: "parallel gateway",
}
