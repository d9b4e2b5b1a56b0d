"""BPMN 2.0 files, as Camunda Modeler saves them, read into definitions and written from them."""

from holdfast.model.bpmn.errors import BpmnError, Problem
from holdfast.model.bpmn.leftovers import Ignored
from holdfast.model.bpmn.read import ReadProcess, read_bpmn, read_processes
from holdfast.model.bpmn.support import SUPPORT, Row, Verdict
from holdfast.model.bpmn.write import write_bpmn

__all__ = [
    "SUPPORT",
    "BpmnError",
    "Ignored",
    "Problem",
    "ReadProcess",
    "Row",
    "Verdict",
    "read_bpmn",
    "read_processes",
    "write_bpmn",
]
