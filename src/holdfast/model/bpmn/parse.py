"""XML from strangers, parsed without following anything it points to."""

import re

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from holdfast.limits import ENTRY_BYTES_MAX, KIB
from holdfast.model.bpmn.errors import BpmnError, Problem
from holdfast.model.bpmn.names import BPMN, Node

BPMN_BYTES_MAX = ENTRY_BYTES_MAX - 256 * KIB
"""A deployment is one record; a quarter of a megabyte is left for its names and its envelope."""


class Tracked(etree.ElementBase):
    """An XML element that knows which of its attributes were read, and whether it was taken.

    lxml makes such objects as they are asked for and forgets them: a reader keeps them all.
    """

    def _init(self) -> None:
        self.read: set[str] = set()
        self.taken = False

    def get(self, key: str, default: str | None = None) -> str | None:
        self.read.add(key)
        return super().get(key, default)


def parse(xml: bytes | str) -> Node:
    """The root of a BPMN file; entities, DTDs, references to other files, huge trees are refused.

    libxml2 itself refuses trees deeper than 256 and entities that grow, before they cost anything.
    """
    data = xml.encode("utf-8", "surrogatepass") if isinstance(xml, str) else xml
    if len(data) > BPMN_BYTES_MAX:
        raise _refused(f"a BPMN file of at most {BPMN_BYTES_MAX} bytes", f"it has {len(data)}")
    parser = etree.XMLParser(
        encoding="utf-8" if isinstance(xml, str) else None,  # what a str declares is out of date
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=Tracked))
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line = error.lineno or 0
        said = re.sub(r", line \d+, column \d+$", "", str(error.msg))
        raise _refused("a BPMN file", f"line {line} is not XML: {said}", line) from None
    except ValueError as error:  # lxml's word for what libxml2 cannot even begin to read
        raise _refused("a BPMN file", f"this is not XML: {error}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise _refused("a BPMN file", "it has a DOCTYPE, which is not supported", 1)
    if root.tag != f"{{{BPMN}}}definitions":
        line = root.sourceline or 0
        found = f"line {line} has {str(root.tag)[:100]!r}"
        raise _refused("the root <definitions> of BPMN 2.0", found, line)
    return root


def _refused(expected: str, but: str, line: int = 0) -> BpmnError:
    return BpmnError.of([Problem(f"Expected {expected}, but {but}", "", line)])
