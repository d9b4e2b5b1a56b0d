"""Files from strangers: refused fast, without anything of the machine in the answer."""

import time
from itertools import pairwise

import pytest
from bpmn_files import FILES, HEAD, MODELS, file
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.bpmn import BpmnError, read_bpmn
from holdfast.model.bpmn.parse import BPMN_BYTES_MAX

LAUGHS = "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise("abcdefghijkl")
)
PLAIN = file('<bpmn:sequenceFlow id="f" sourceRef="start" targetRef="end" />')


def with_doctype(doctype: str, text: str = "") -> str:
    declared = HEAD.replace("?>", f"?>{doctype}", 1)
    return PLAIN.replace(HEAD, declared).replace('id="start"', f'id="start" name="{text}"')


ATTACKS = {
    "a billion laughs": with_doctype(f'<!DOCTYPE d [<!ENTITY a "lol">{LAUGHS}]>', "&l;"),
    "laughs that nobody hears": with_doctype(f'<!DOCTYPE d [<!ENTITY a "lol">{LAUGHS}]>'),
    "an external entity": with_doctype('<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    "an external entity in use": with_doctype(
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ).replace("</bpmn:process>", "<bpmn:documentation>&x;</bpmn:documentation></bpmn:process>"),
    "a parameter entity": with_doctype(
        '<!DOCTYPE d [<!ENTITY % x SYSTEM "http://localhost:1/x.dtd"> %x;]>'
    ),
    "an external DTD": with_doctype('<!DOCTYPE d SYSTEM "http://localhost:1/x.dtd">'),
    "default attributes": with_doctype('<!DOCTYPE d [<!ATTLIST d x CDATA "y">]>'),
    "deep": HEAD + "<bpmn:process>" * 100_000,
    "deep and well-formed": HEAD
    + '<bpmn:subProcess id="s">' * 5_000
    + "</bpmn:subProcess>" * 5_000
    + "</bpmn:definitions>",
    "large": PLAIN.replace("\n", "\n" + " " * BPMN_BYTES_MAX, 1),
    "wide": HEAD + "<a " + " ".join(f"a{n}='1'" for n in range(100_000)),
    "another root": "<html />",
    "nothing": "",
    "no characters of XML": "\x00\ud800",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_at_once(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(BpmnError) as caught:
        read_bpmn(ATTACKS[name])
    assert time.monotonic() - began < 1.0
    assert len(caught.value.message) < 1_000
    assert "root:" not in caught.value.message


def test_other_files_are_not_included() -> None:
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd" />'
    [definition] = read_bpmn(PLAIN.replace("</bpmn:process>", f"{include}</bpmn:process>"))
    assert len(definition.elements) == 2


def test_sub_processes_within_reason() -> None:
    depth = 200
    nested = "".join(f'<bpmn:subProcess id="s{n}">' for n in range(depth))
    with pytest.raises(BpmnError, match="Expected"):
        read_bpmn(file(nested + "</bpmn:subProcess>" * depth))


@given(st.binary(max_size=2_000))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(BpmnError):
        read_bpmn(data)


@given(st.text(max_size=2_000))
def test_garbage_in_words_is_refused(text: str) -> None:
    with pytest.raises(BpmnError):
        read_bpmn(text)


@settings(deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Nothing but BpmnError, whatever is missing, doubled or replaced."""
    text = (MODELS / name).read_bytes()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 60, len(text))))
        swap = data.draw(st.sampled_from([b"", b"x", text[start:end] * 2, b'"', b"=", b"&#10;"]))
        text = text[:start] + swap + text[end:]
    try:
        read_bpmn(text)
    except BpmnError as error:
        assert error.message.startswith("Expected")


LINES = {name: (MODELS / name).read_text().splitlines() for name in FILES}


@settings(deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_a_file_without_some_of_its_attributes_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    lines = list(LINES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        words = lines[place].split('" ')
        lines[place] = '" '.join(words[:1] + words[2:]) if len(words) > 2 else lines[place]
    try:
        read_bpmn("\n".join(lines))
    except BpmnError as error:
        assert error.message.startswith("Expected")
