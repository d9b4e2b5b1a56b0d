"""What becomes of the MIWG's reference models; tests and docs/reference/bpmn.md go by it."""

from typing import NamedTuple

SOURCE = (
    "[bpmn-miwg/bpmn-miwg-test-suite](https://github.com/bpmn-miwg/bpmn-miwg-test-suite),"
    " CC BY 3.0; they are not part of this repository"
)


class Read(NamedTuple):
    """The processes of a file, and what happens when they are started."""

    processes: list[str]
    story: str


class Refused(NamedTuple):
    """The first problem of a file."""

    element: str
    line: int
    words: str  # of the error
    why: str  # for the reader of the documentation


_AT_ONCE = "starts and comes to its end at once: a token passes its plain tasks"

READ = {
    "A.1.0": Read(["WFP-6-"], _AT_ONCE),
    "A.4.0": Read(["WFP-6-1", "WFP-6-2"], f"two processes; each {_AT_ONCE}"),
    "A.4.1": Read(
        [
            "sid-34746A54-1D7D-46CA-B219-0C4CEAE51170",
            "sid-54D696FD-DEDC-45F3-99DB-1404DA433FC4",
        ],
        f"two processes; each {_AT_ONCE}",
    ),
    "C.9.1": Read(
        ["requestDocument_en"],
        "nobody answers: reminders each day, after a week the customer is called, and it ends",
    ),
}

_CONDITION = "a way out of a gateway has no condition"
_MESSAGE = "a message without a name"
_FEEL = "an expression in another language"

REFUSED = {
    # drawings that leave open which way is taken
    "A.2.0": Refused(
        "_35fe57a7-1302-44e2-bf58-032f11af7ecb", 23, "to have a condition", _CONDITION
    ),
    "A.2.1": Refused("_To9ZyjOCEeSknpIVFCxNIQ", 65, "to have a condition", _CONDITION),
    # messages without a name, timers without a time, loops without a collection
    "A.3.0": Refused(
        "_428dcbf5-8e5e-48e0-9c0c-d93003fa8c82", 17, "<messageEventDefinition>", _MESSAGE
    ),
    "B.1.0": Refused(
        "_e314751e-5c3a-41f2-a1ae-4cb99efa0916", 22, "<timerEventDefinition>",
        "a timer without a time",
    ),
    "C.1.0": Refused(
        "sid-36EA43D1-0FE6-4197-AC57-7A43785B784B", 118, "<messageEventDefinition>", _MESSAGE
    ),
    "C.2.0": Refused(
        "__0ef615c7-5456-45c8-9cfb-f1fe30c44436", 34, "<messageEventDefinition>", _MESSAGE
    ),
    "C.6.0": Refused(
        "_15fef309-6718-4352-9b71-f757bcd8c023", 17, "<messageEventDefinition>", _MESSAGE
    ),
    "C.7.0": Refused(
        "_a36ddf2f-23c1-46c5-86d4-bd2a0eb42535", 190, "<multiInstanceLoopCharacteristics>",
        "a loop without a collection",
    ),
    # expressions of other languages, variables with spaces
    "C.1.1": Refused("invoiceApproved", 290, "to be a FEEL expression", _FEEL),
    "C.8.0": Refused(
        "_a97c1a48-faba-447b-bfa6-7aa81a6fe0a0", 381, "to be a FEEL expression", _FEEL
    ),
    "C.8.1": Refused(
        "_2b960d84-feb1-46a9-a1a1-c300dd996b99", 201, "to be a variable",
        "a variable with a name that is none",
    ),
    # elements that do not run here
    "B.2.0": Refused(
        "_cba8fbed-2bb6-40a9-8ac5-83e827ce9d9f", 11, "<conditionalEventDefinition>",
        "a conditional event",
    ),
    "C.3.0": Refused(
        "_c73a5f4a-72f1-4e11-bb40-2f98da75fb9a", 75, "startQuantity",
        "a `startQuantity` other than 1",
    ),
    "C.4.0": Refused(
        "_855451b0-5298-48b2-a81d-84ecbcca0a85", 123, "<signalEventDefinition>", "a signal"
    ),
    "C.5.0": Refused(
        "_8055ae64-cafd-4fd0-be36-2216e3b02e37", 292, "<signalEventDefinition>", "a signal"
    ),
    "C.9.0": Refused("Activity_1ke2ixr", 112, "triggeredByEvent", "an event sub-process"),
    "C.9.2": Refused("Activity_0uvp3cb", 100, "triggeredByEvent", "an event sub-process"),
}  # fmt: skip
