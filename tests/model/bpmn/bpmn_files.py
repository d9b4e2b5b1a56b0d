"""The ten models and small files for the tests of BPMN."""

from pathlib import Path

import msgspec

from holdfast.model.bpmn import read_bpmn
from holdfast.model.definition import Definition

MODELS = Path(__file__).parent / "models"
FILES = sorted(path.name for path in MODELS.glob("*.bpmn"))

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
  xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
"""


def model(name: str) -> Definition:
    """The process of one of the ten files."""
    [definition] = read_bpmn((MODELS / name).read_bytes())
    return definition


def file(inside: str, beside: str = "") -> str:
    """A file with a process of a start, what is given, and an end; it begins on line 5."""
    return (
        f'{HEAD}<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="start" />\n'
        f"{inside}\n"
        f'<bpmn:endEvent id="end" /></bpmn:process>\n{beside}</bpmn:definitions>'
    )


def task(inside: str = "", tag: str = "serviceTask", attributes: str = "") -> str:
    """A file with one task between start and end, and what is in its extension elements."""
    return file(
        f'<bpmn:{tag} id="task" {attributes}><bpmn:extensionElements>{inside}'
        f"</bpmn:extensionElements></bpmn:{tag}>"
        '<bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="task" />'
        '<bpmn:sequenceFlow id="f2" sourceRef="task" targetRef="end" />'
    )


def undrawn(definition: Definition) -> Definition:
    return msgspec.structs.replace(definition, drawing=None)
