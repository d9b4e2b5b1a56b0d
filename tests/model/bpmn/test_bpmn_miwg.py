"""The reference models of the BPMN Model Interchange Working Group: each is read, or told why not.

They are not part of this repository (CC BY 3.0, bpmn-miwg/bpmn-miwg-test-suite); they are looked
for beside it.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.model.bpmn import BpmnError, read_bpmn, write_bpmn
from holdfast.model.drawing import draw_svg

SUITE = Path(__file__).parents[4] / "shared" / "bpmn-miwg"

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the MIWG models are not in {SUITE}")


class Refused(NamedTuple):
    """The first problem of a file."""

    element: str
    line: int
    words: str


READ = {
    "A.1.0": ["WFP-6-"],
    "A.4.0": ["WFP-6-1", "WFP-6-2"],
    "A.4.1": [
        "sid-34746A54-1D7D-46CA-B219-0C4CEAE51170",
        "sid-54D696FD-DEDC-45F3-99DB-1404DA433FC4",
    ],
    "C.9.1": ["requestDocument_en"],
}

REFUSED = {
    # drawings that leave open which way is taken
    "A.2.0": Refused("_35fe57a7-1302-44e2-bf58-032f11af7ecb", 23, "to have a condition"),
    "A.2.1": Refused("_To9ZyjOCEeSknpIVFCxNIQ", 65, "to have a condition"),
    # messages without a name, timers without a time, loops without a collection
    "A.3.0": Refused("_428dcbf5-8e5e-48e0-9c0c-d93003fa8c82", 17, "<messageEventDefinition>"),
    "B.1.0": Refused("_e314751e-5c3a-41f2-a1ae-4cb99efa0916", 22, "<timerEventDefinition>"),
    "C.1.0": Refused("sid-36EA43D1-0FE6-4197-AC57-7A43785B784B", 118, "<messageEventDefinition>"),
    "C.2.0": Refused("__0ef615c7-5456-45c8-9cfb-f1fe30c44436", 34, "<messageEventDefinition>"),
    "C.6.0": Refused("_15fef309-6718-4352-9b71-f757bcd8c023", 17, "<messageEventDefinition>"),
    "C.7.0": Refused(
        "_a36ddf2f-23c1-46c5-86d4-bd2a0eb42535", 190, "<multiInstanceLoopCharacteristics>"
    ),
    # expressions of other languages, variables with spaces
    "C.1.1": Refused("invoiceApproved", 290, "to be a FEEL expression"),
    "C.8.0": Refused("_a97c1a48-faba-447b-bfa6-7aa81a6fe0a0", 381, "to be a FEEL expression"),
    "C.8.1": Refused("_2b960d84-feb1-46a9-a1a1-c300dd996b99", 201, "to be a variable"),
    # elements that do not run here
    "B.2.0": Refused("_cba8fbed-2bb6-40a9-8ac5-83e827ce9d9f", 11, "<conditionalEventDefinition>"),
    "C.3.0": Refused("_c73a5f4a-72f1-4e11-bb40-2f98da75fb9a", 75, "startQuantity"),
    "C.4.0": Refused("_855451b0-5298-48b2-a81d-84ecbcca0a85", 123, "<signalEventDefinition>"),
    "C.5.0": Refused("_8055ae64-cafd-4fd0-be36-2216e3b02e37", 292, "<signalEventDefinition>"),
    "C.9.0": Refused("Activity_1ke2ixr", 112, "triggeredByEvent"),
    "C.9.2": Refused("Activity_0uvp3cb", 100, "triggeredByEvent"),
}


def bytes_of(name: str) -> bytes:
    return (SUITE / f"{name}.bpmn").read_bytes()


def test_every_model_is_in_the_table() -> None:
    assert {path.stem for path in SUITE.glob("*.bpmn")} == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_a_model_is_read_drawn_and_written(name: str) -> None:
    definitions = read_bpmn(bytes_of(name), drafts=True)
    assert [definition.id for definition in definitions] == READ[name]
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
