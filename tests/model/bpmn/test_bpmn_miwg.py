"""The reference models of the BPMN Model Interchange Working Group: each is read, or told why not.

They are not part of this repository (CC BY 3.0, bpmn-miwg/bpmn-miwg-test-suite); they are looked
for beside it.
"""

from pathlib import Path

import pytest
from tests.model.bpmn.miwg import READ, REFUSED

from holdfast.model.bpmn import BpmnError, read_bpmn, write_bpmn
from holdfast.model.drawing import draw_svg

SUITE = Path(__file__).parents[4] / "shared" / "bpmn-miwg"

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the MIWG models are not in {SUITE}")


def bytes_of(name: str) -> bytes:
    return (SUITE / f"{name}.bpmn").read_bytes()


def test_every_model_is_in_the_table() -> None:
    assert {path.stem for path in SUITE.glob("*.bpmn")} == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_a_model_is_read_drawn_and_written(name: str) -> None:
    definitions = read_bpmn(bytes_of(name), drafts=True)
    assert [definition.id for definition in definitions] == READ[name].processes
    for definition in definitions:
        assert definition.drawing is not None
        assert draw_svg(definition).startswith("<svg")
        assert read_bpmn(write_bpmn(definition)) == [definition]


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_is_refused_with_its_element_and_line(name: str) -> None:
    with pytest.raises(BpmnError) as caught:
        read_bpmn(bytes_of(name), drafts=True)
    error, expected = caught.value, REFUSED[name]
    assert (error.element, error.line) == (expected.element, expected.line)
    assert expected.words in error.message
    assert f"line {expected.line}" in error.message
    lines = bytes_of(name).splitlines()
    assert all(0 < problem.line <= len(lines) for problem in error.problems)
    assert expected.element.encode() in b"\n".join(lines[: expected.line])
