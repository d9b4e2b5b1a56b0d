"""docs/reference/job-states.md and the picture of a task's life, both from TRANSITIONS."""

from html import escape
from typing import NamedTuple

from generator import markdown
from generator.markdown import code, table
from generator.source import members_of
from holdfast.engine.jobs.values import FINAL_STATES, TRANSITIONS, JobState

_BEGIN = "(new)"


def page() -> str:
    """The states and the transitions between them."""
    comments = members_of(JobState)
    states = [
        (code(state), "yes" if state in FINAL_STATES else "", comments[state.name])
        for state in JobState
    ]
    rows = [
        (
            code(state) if state else _BEGIN,
            code(event.partition(" ")[0]),
            _condition(event),
            code(to),
        )
        for (state, event), to in TRANSITIONS.items()
    ]
    return markdown.page(
        "Job states",
        "A task that was submitted is a job of the engine. This is its life.",
        "![The life of a task](../pictures/task-life.svg)",
        "## States",
        table(("State", "Final", ""), states),
        "## Transitions",
        "Nothing else changes a job's state. Each event is a record on the log; see"
        " [Records](records.md#intents-of-job).",
        table(("From", "Event", "When", "To"), rows),
        "The job of a process has no state after its end: its instance goes on, and no result is"
        " kept. It is also in the state `ERROR_THROWN`, when a worker reports an error that the"
        " process knows: it has ended if a boundary event catches the error; else it has an"
        " incident, and waits for a worker again when that is resolved.",
        "## As a diagram",
        f"```mermaid\n{_mermaid()}\n```",
    )


def _condition(event: str) -> str:
    return event.partition(" ")[2].strip("()")


def _mermaid() -> str:
    lines = ["stateDiagram-v2"]
    for (state, event), to in TRANSITIONS.items():
        lines.append(f"    {state or '[*]'} --> {to}: {event}")
    reached = set(TRANSITIONS.values())
    lines += [f"    {state} --> [*]" for state in JobState if state in FINAL_STATES & reached]
    return "\n".join(lines)


# --- the picture ------------------------------------------------------------------------------


class _Edge(NamedTuple):
    path: str
    x: int
    y: int
    anchor: str = "middle"


_PLACES = {
    JobState.SCHEDULED: (330, 96), JobState.WAITING: (330, 236), JobState.ACTIVE: (650, 236),
    JobState.INCIDENT: (650, 396), JobState.COMPLETED: (1010, 236), JobState.DISCARDED: (1010, 396),
    JobState.CANCELED: (1010, 96),
}  # fmt: skip
_WIDTH, _HEIGHT = 148, 44
_EDGES: dict[tuple[JobState | None, JobState], _Edge] = {
    (None, JobState.WAITING): _Edge("M78 236 H252", 165, 226),
    (None, JobState.SCHEDULED): _Edge("M78 228 C110 130 150 96 252 96", 128, 84),
    (JobState.SCHEDULED, JobState.WAITING): _Edge("M330 118 V210", 320, 172, "end"),
    (JobState.WAITING, JobState.ACTIVE): _Edge("M404 228 H572", 490, 218),
    (JobState.ACTIVE, JobState.WAITING): _Edge("M576 250 H408", 490, 270),
    (JobState.ACTIVE, JobState.COMPLETED): _Edge("M724 236 H932", 876, 226),
    (JobState.ACTIVE, JobState.SCHEDULED): _Edge("M640 214 C630 130 560 96 408 96", 542, 92),
    (JobState.ACTIVE, JobState.INCIDENT): _Edge("M650 258 V370", 660, 312, "start"),
    (JobState.INCIDENT, JobState.WAITING): _Edge("M576 396 C420 396 330 360 330 262", 400, 396),
    (JobState.INCIDENT, JobState.DISCARDED): _Edge("M724 396 H932", 876, 386),
}  # fmt: skip
_OPEN_FRAME = (226, 50, 596, 400)  # x, y, width, height: around the states that are not final


def picture() -> str:
    """The life of a task; what it shows comes from the table, only the places are set by hand."""
    labels: dict[tuple[JobState | None, JobState], list[str]] = {}
    canceled: set[JobState | None] = set()
    for (state, event), to in TRANSITIONS.items():
        if to is JobState.CANCELED:
            canceled.add(state)
        else:
            labels.setdefault((state, to), []).append(event)
    assert set(labels) == set(_EDGES), "a transition has no place in docs/generator/job_states.py"
    assert canceled == set(JobState) - FINAL_STATES, (
        "CANCELED no longer comes from every open state"
    )
    x, y, width, height = _OPEN_FRAME
    parts = [
        _HEAD,
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="14" class="open"/>',
        f'<text x="{x + 14}" y="{y + height - 14}" class="label" text-anchor="start">'
        "not ended: kept until it is completed, canceled or discarded</text>",
        '<circle cx="66" cy="236" r="9" fill="#334155"/>',
        f'<path d="M{x + width} 96 H932" class="edge"/>',
        '<text x="876" y="86" class="label" text-anchor="middle">CANCELED</text>',
    ]
    for edge, events in labels.items():
        parts.append(_edge(_EDGES[edge], events))
    parts += [_state(state, place) for state, place in _PLACES.items()]
    return "\n".join((*parts, "</svg>")) + "\n"


def _edge(edge: _Edge, events: list[str]) -> str:
    lines = [f'<path d="{edge.path}" class="edge"/>']
    first = edge.y - 16 * (len(events) - 1) if edge.y < 260 else edge.y
    lines += [
        f'<text x="{edge.x}" y="{first + 16 * number}" class="label" text-anchor="{edge.anchor}">'
        f"{escape(event)}</text>"
        for number, event in enumerate(events)
    ]
    return "\n".join(lines)


def _state(state: JobState, place: tuple[int, int]) -> str:
    x, y = place
    kind = (
        "good" if state is JobState.COMPLETED
        else "bad" if state is JobState.INCIDENT
        else "end" if state in FINAL_STATES
        else "state"
    )  # fmt: skip
    return (
        f'<rect x="{x - _WIDTH // 2}" y="{y - _HEIGHT // 2}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' rx="10" class="{kind}"/>\n'
        f'<text x="{x}" y="{y + 6}" class="name" text-anchor="middle">{state}</text>'
    )


_HEAD = """<!-- Generated by docs/generate.py from engine.jobs.values.TRANSITIONS. -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1110 480" role="img"
     aria-label="The life of a task as states">
<style>
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .name { font-size: 16px; font-weight: 600; fill: #ffffff; letter-spacing: .4px; }
  .label { font-size: 13px; fill: #475569; }
  .edge { fill: none; stroke: #64748b; stroke-width: 1.8; marker-end: url(#tip); }
  .open { fill: #eef4fb; stroke: #cbd9ea; stroke-width: 1.5; }
  .state { fill: #2563a8; }
  .bad { fill: #c2571a; }
  .good { fill: #2a7d4f; }
  .end { fill: #64748b; }
</style>
<defs>
  <marker id="tip" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7"
          orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z" fill="#64748b"/></marker>
</defs>
<rect x="1" y="1" width="1108" height="478" rx="18" fill="#fbfcfe" stroke="#d5deea"/>"""
