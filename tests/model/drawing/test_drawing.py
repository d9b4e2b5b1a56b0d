"""Pictures of processes: everything is in them, nothing lies on anything else."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.model.random_processes import processes

from holdfast.model.bpmn import read_bpmn
from holdfast.model.definition import (
    Definition,
    Drawing,
    Edge,
    Element,
    ElementKind,
    Flow,
    Shape,
)
from holdfast.model.drawing import draw_png, draw_svg, layout
from holdfast.model.drawing.sizes import text_width, wrap
from holdfast.model.dsl import Process, otherwise, path, timeout, when

MODELS = sorted((Path(__file__).parents[1] / "bpmn" / "models").glob("*.bpmn"))
each_model = pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
SVG = "{http://www.w3.org/2000/svg}"


def read(path: Path) -> Definition:
    [definition] = read_bpmn(path.read_bytes())
    return definition


def inside(inner: Shape, outer: Shape) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def overlap(one: Shape, other: Shape) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def on_border(point: tuple[float, float], shape: Shape) -> bool:
    x, y = point
    across = shape.x - 0.01 <= x <= shape.x + shape.width + 0.01
    along = shape.y - 0.01 <= y <= shape.y + shape.height + 0.01
    left_or_right = min(abs(x - shape.x), abs(x - shape.x - shape.width)) < 0.01
    top_or_bottom = min(abs(y - shape.y), abs(y - shape.y - shape.height)) < 0.01
    return across and along and (left_or_right or top_or_bottom)


def crossed(edge: Edge, shape: Shape) -> bool:
    """Whether a way leads through a shape, more than along its border."""
    return any(
        min(x1, x2) < shape.x + shape.width - 1
        and max(x1, x2) > shape.x + 1
        and min(y1, y2) < shape.y + shape.height - 1
        and max(y1, y2) > shape.y + 1
        for (x1, y1), (x2, y2) in pairwise(edge.points)
    )


def neighbours(definition: Definition) -> Iterator[tuple[Element, Element]]:
    """Elements of one scope, but for boundary events, which lie on their hosts."""
    for one, other in combinations(definition.elements, 2):
        kinds = (one.kind, other.kind)
        if one.scope == other.scope and ElementKind.BOUNDARY not in kinds:
            yield one, other


def check(definition: Definition) -> None:
    """What is true of every layout."""
    drawing = layout(definition)
    shapes = {shape.id: shape for shape in drawing.shapes}
    assert list(shapes) == [element.id for element in definition.elements]
    assert [edge.id for edge in drawing.edges] == [flow.id for flow in definition.flows]
    for one, other in neighbours(definition):
        assert not overlap(shapes[one.id], shapes[other.id]), (one.id, other.id)
    scope = {element.id: element.scope for element in definition.elements}
    host = {element.id: element.host for element in definition.elements}
    for element in definition.elements:
        shape = shapes[element.id]
        if element.scope:
            assert inside(shape, shapes[element.scope]), element.id
        if element.host:
            middle = (shape.x + shape.width / 2, shape.y + shape.height / 2)
            assert on_border(middle, shapes[element.host])
    for flow, edge in zip(definition.flows, drawing.edges, strict=True):
        assert on_border(edge.points[0], shapes[flow.source]), flow.id
        assert on_border(edge.points[-1], shapes[flow.target]), flow.id
        for (x1, y1), (x2, y2) in pairwise(edge.points):
            assert x1 == x2 or y1 == y2, "a corner that is not right"
        ends = {flow.source, flow.target, host[flow.source]}
        for element in definition.elements:
            if element.id not in ends and element.scope == scope[flow.source] and not element.host:
                assert not crossed(edge, shapes[element.id]), (flow.id, element.id)


@each_model
def test_our_models_are_laid_out_well(path: Path) -> None:
    check(read(path))


@settings(deadline=None)
@given(processes())
def test_whatever_is_said_in_python_is_laid_out_well(process: Process) -> None:
    check(process.definition())


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.data())
def test_any_graph_is_laid_out(count: int, data: st.DataObject) -> None:
    """Loops to themselves, islands, several starts: what the DSL does not say."""
    names = st.integers(0, count - 1).map(str)
    pairs = data.draw(st.lists(st.tuples(names, names), max_size=25))
    kinds = st.sampled_from([ElementKind.PASS, ElementKind.PARALLEL, ElementKind.START])
    elements = tuple(Element(str(index), data.draw(kinds)) for index in range(count))
    flows = tuple(Flow(f"f{place}", *pair) for place, pair in enumerate(pairs))
    definition = Definition("p", elements, flows)
    check(definition)
    etree.fromstring(draw_svg(definition))


@each_model
def test_the_same_process_gives_the_same_picture(path: Path) -> None:
    assert layout(read(path)) == layout(read(path))
    assert draw_svg(read(path)) == draw_svg(read(path))


def test_a_long_process_with_ways_back_is_laid_out_in_time() -> None:
    count = 3_000
    elements = tuple(Element(f"e{index}", ElementKind.PASS) for index in range(count))
    ahead = [Flow(f"f{index}", f"e{index}", f"e{index + 1}") for index in range(count - 1)]
    back = [Flow(f"b{index}", f"e{index}", f"e{index // 2}") for index in range(2, count)]
    drawing = layout(Definition("p", elements, (*ahead, *back)))
    assert len(drawing.edges) == len(ahead) + len(back)


# --- SVG and PNG ----------------------------------------------------------------------------------


def box(svg: str) -> Shape:
    x, y, width, height = (float(each) for each in etree.fromstring(svg).get("viewBox").split())
    return Shape("", x, y, width, height)


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in etree.fromstring(svg).iter(f"{SVG}text")]


@each_model
@pytest.mark.parametrize("drawn", [True, False], ids=["drawn", "laid out"])
def test_everything_is_in_the_picture(path: Path, drawn: bool) -> None:
    definition = read(path) if drawn else msgspec.structs.replace(read(path), drawing=None)
    svg = draw_svg(definition)
    picture = box(svg)
    for shape in (definition.drawing or layout(definition)).shapes:
        assert inside(shape, picture)
    shown = {"".join(text.split()) for text in texts(svg)}
    for element in definition.elements:
        assert "".join(element.name.split()) in shown | {""}
    for flow in definition.flows:
        assert "".join(flow.name.split()) in shown | {""}


def test_tokens_and_incidents_are_shown_with_their_counts() -> None:
    definition = read(MODELS[0])
    first, second, third = (element.id for element in definition.elements[:3])
    plain = draw_svg(definition)
    svg = draw_svg(definition, {first: 7, third: 0}, {first: 2, second: 123_456}, [third])
    counts = [text for text in texts(svg) if text not in texts(plain)]
    assert sorted(counts) == ["123k", "2", "7"]
    assert "#1a6cf0" in svg
    assert "#1a6cf0" not in plain
    assert "#d92d20" in svg
    assert "#edf6f0" in svg, "what is done is tinted"


def test_what_has_no_name_is_known_by_what_it_is() -> None:
    process = (
        Process("p")
        .task("charge", on=[timeout("P1D", path().fail("late", error="LATE"))])
        .choose(
            when("total > 5", path().wait("paid", message="payment", key="id")), otherwise(path())
        )
    )
    assert sorted(texts(draw_svg(process.definition()))) == [
        "LATE", "P1D", "charge", "payment", "total > 5",
    ]  # fmt: skip
    unnamed = Element("Activity_0abc12d", ElementKind.PASS)
    assert texts(draw_svg(Definition("p", (unnamed,), ()))) == []


def test_a_page_finds_elements_by_their_ids() -> None:
    definition = read(MODELS[0])
    found = [node.get("data-element") for node in etree.fromstring(draw_svg(definition)).iter()]
    assert {element.id for element in definition.elements} == set(found) - {None}


def test_what_is_not_in_the_process_is_not_shown() -> None:
    definition = read(MODELS[0])
    assert draw_svg(definition, {"other": 1}, {"other": 1}, ["other"]) == draw_svg(definition)


@given(st.text(max_size=60))
def test_any_name_makes_an_svg(name: str) -> None:
    elements = tuple(
        Element(kind.name, kind, name, host="JOB" if kind is ElementKind.BOUNDARY else "")
        for kind in ElementKind
    )
    flows = (Flow("f", "START", "JOB", name=name), Flow("g", "BOUNDARY", "END", name=name))
    etree.fromstring(draw_svg(Definition(name, elements, flows, name)))


def test_an_empty_process_has_a_picture() -> None:
    assert draw_png(draw_svg(Definition("p", (), ()))).startswith(b"\x89PNG")


def test_a_drawing_that_lacks_something_is_not_used() -> None:
    definition = read(MODELS[0])
    assert definition.drawing is not None
    fewer = Drawing(definition.drawing.shapes[1:], definition.drawing.edges)
    lacking = msgspec.structs.replace(definition, drawing=fewer)
    bare = msgspec.structs.replace(definition, drawing=None)
    assert draw_svg(lacking) == draw_svg(bare)


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def test_a_png_has_the_size_of_the_picture() -> None:
    svg = draw_svg(read(MODELS[0]))
    width, height = size(draw_png(svg, 1.0))
    assert abs(width - box(svg).width) <= 1
    assert abs(height - box(svg).height) <= 1
    assert size(draw_png(svg))[0] in range(2 * width - 2, 2 * width + 3)


def test_a_huge_picture_is_drawn_smaller() -> None:
    far = Drawing((Shape("a", 0, 0, 90_000, 80_000),))
    definition = Definition("p", (Element("a", ElementKind.PASS),), (), drawing=far)
    width, height = size(draw_png(draw_svg(definition), 3.0))
    assert width * height <= 16_100_000


def test_a_machine_without_fonts_draws_the_rest() -> None:
    import resvg_py

    svg = draw_svg(read(MODELS[0]))
    assert bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))[:4] == b"\x89PNG"


def test_names_are_wrapped_where_there_is_no_room() -> None:
    lines = wrap("Send a reminder to everybody who has not answered yet", 90, 12)
    assert len(lines) > 2
    assert all(text_width(line, 12) <= 91 for line in lines)
    assert wrap("", 90, 12) == []
    assert len(wrap("x" * 500, 90, 12)) == 5
    assert wrap("x" * 500, 90, 12)[-1].endswith("…")
