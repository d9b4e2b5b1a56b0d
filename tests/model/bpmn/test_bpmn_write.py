"""What is written is read again as it was."""

from itertools import pairwise

import msgspec
import pytest
from bpmn_files import FILES, model, undrawn
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.model.random_processes import processes

from holdfast.errors import InvalidArgument
from holdfast.model.bpmn import read_processes, write_bpmn
from holdfast.model.bpmn.texts import attempts, failures
from holdfast.model.definition import Definition, Element, ElementKind, Flow, JobSpec
from holdfast.model.dsl import Process


def again(definition: Definition) -> Definition:
    [found] = read_processes(write_bpmn(definition))
    assert found.ignored == [], "what holdfast writes itself is all read"
    return found.definition


def settled(definition: Definition) -> Definition:
    """Without its drawing; flows by where they begin, for only there their order means something.

    A file has the flows inside of a sub-process together, a definition need not.
    """
    flows = tuple(sorted(definition.flows, key=lambda flow: flow.source))
    return msgspec.structs.replace(undrawn(definition), flows=flows)


@pytest.mark.parametrize("name", FILES)
def test_our_models_come_back_as_they_were_with_their_drawing(name: str) -> None:
    assert again(model(name)) == model(name)


@pytest.mark.parametrize("name", FILES)
def test_our_models_come_back_with_a_drawing_when_they_had_none(name: str) -> None:
    plain = undrawn(model(name))
    found = again(plain)
    assert found.drawing is not None
    assert undrawn(found) == plain


@settings(deadline=None)
@given(processes())
def test_processes_said_in_python_come_back_as_they_were(process: Process) -> None:
    definition = process.definition()
    assert settled(again(definition)) == settled(definition)


@settings(deadline=None)
@given(processes())
def test_ids_are_unique_and_references_lead_somewhere(process: Process) -> None:
    root = etree.fromstring(write_bpmn(process.definition()))
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    for node in root.iter():
        for name in ("messageRef", "errorRef", "bpmnElement", "sourceRef", "targetRef", "default"):
            assert node.get(name) is None or node.get(name) in ids


def test_ids_of_messages_are_not_those_of_elements() -> None:
    process = (
        Process("p").task("Message_1").wait("Error_1", message="m", key="k").fail("x", error="E")
    )
    assert undrawn(again(process.definition())) == process.definition()


@pytest.mark.parametrize(
    "said",
    [
        "2",
        "0",
        "=n",
        "=(n) - 1",
        "=(n) + 1",
        "=(a) + (b) - 1",
        "=((n) + 1) - 1",
        "=((n) - 1) + 1",
        '=(if a = ")" then 1 else 2) - 1',
        "=( n) - 1",
    ],
)
def test_retries_come_back(said: str) -> None:
    assert failures(attempts(said)) == said


EXPRESSIONS = st.recursive(
    st.sampled_from(["n", "1", '")"', '"(\\""']),
    lambda inner: st.one_of(
        inner.map("({})".format),
        inner.map("({}) + 1".format),
        inner.map("({}) - 1".format),
        st.tuples(inner, inner).map(" + ".join),
    ),
)


@given(EXPRESSIONS)
def test_any_expression_for_retries_comes_back(text: str) -> None:
    assert failures(attempts(f"={text}")) == f"={text}"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"]), max_size=20))
def test_names_and_headers_come_back(text: str) -> None:
    elements = (
        Element("s", ElementKind.START, text),
        Element("t", ElementKind.JOB, job=JobSpec("x", "2", (("key", text),))),
    )
    definition = Definition("p", elements, (Flow("f", "s", "t"),), text)
    assert undrawn(again(definition)) == definition


def test_what_xml_cannot_say_is_refused() -> None:
    definition = Definition("p", (Element("s", ElementKind.START, "\x00"),), ())
    with pytest.raises(InvalidArgument, match="Expected texts that fit into XML"):
        write_bpmn(definition)


def test_a_job_for_a_person_keeps_headers_in_any_order() -> None:
    key = "io.camunda.zeebe:"
    for headers in (
        ((f"{key}assignee", "a"), ("x", "y")),
        (("x", "y"), (f"{key}assignee", "a"), (f"{key}dueDate", "d")),
        ((f"{key}dueDate", "d"), (f"{key}assignee", "a")),
        ((f"{key}assignee", "a"), (f"{key}assignee", "b")),
        ((f"{key}assignee", ""),),
    ):
        job = JobSpec("io.camunda.zeebe:userTask", "2", headers)
        elements = (
            Element("s", ElementKind.START),
            Element("t", ElementKind.JOB, drawn_as="userTask", job=job),
        )
        definition = Definition("p", elements, (Flow("f", "s", "t"),))
        assert undrawn(again(definition)) == definition


def test_elements_are_written_in_the_order_that_the_schema_wants() -> None:
    order = ["extensionElements", "incoming", "outgoing", "multiInstanceLoopCharacteristics"]
    for name in FILES:
        root = etree.fromstring(write_bpmn(model(name)))
        for node in root.iter("{*}serviceTask", "{*}sendTask", "{*}subProcess", "{*}callActivity"):
            tags = [etree.QName(each).localname for each in node]
            places = [order.index(tag) if tag in order else len(order) for tag in tags]
            assert all(before <= after for before, after in pairwise(places))
