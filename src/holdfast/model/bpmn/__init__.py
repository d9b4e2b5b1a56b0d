"""BPMN 2.0 files, as Camunda Modeler saves them, read into definitions and written from them."""

from holdfast.model.bpmn.errors import BpmnError, Problem
from holdfast.model.bpmn.read import read_bpmn
from holdfast.model.bpmn.support import SUPPORT, Row, Verdict
from holdfast.model.bpmn.write import write_bpmn

__all__ = ["SUPPORT", "BpmnError", "Problem", "Row", "Verdict", "read_bpmn", "write_bpmn"]
