"""Records that led to one another, as a tree that a template draws."""

from dataclasses import dataclass, field

from holdfast.gateway.journal.shapes import RecordTrace, RecordView


@dataclass
class RecordNode:
    """A record, and those that came of it."""

    record: RecordView
    is_asked: bool = False  # the one that the page is about
    children: "list[RecordNode]" = field(default_factory=list["RecordNode"])


def record_tree(trace: RecordTrace) -> RecordNode:
    """The tree from the first cause down; the way to the record itself is always in it."""
    asked = trace.causes[-1].position
    nodes: dict[int, RecordNode] = {}
    for each in (*trace.causes, *trace.effects):
        nodes.setdefault(each.position, RecordNode(each, each.position == asked))
    root = trace.causes[0].position
    for position in sorted(nodes):
        source = nodes[position].record.source_position
        if position != root and source is not None and source in nodes:
            nodes[source].children.append(nodes[position])
    return nodes[root]
