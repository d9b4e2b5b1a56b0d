"""BPMN files become definitions: what each element means, and what is said about the others."""

import pytest
from bpmn_files import FILES, HEAD, MODELS, file, model, task

from holdfast.errors import Code, InvalidArgument
from holdfast.model.bpmn import SUPPORT, BpmnError, Verdict, read_bpmn
from holdfast.model.definition import (
    Definition,
    Element,
    ElementKind,
    JobSpec,
    Loop,
    Mapping,
    Message,
    Timer,
    TimerKind,
)


def element(definition: Definition, name: str) -> Element:
    [found] = [each for each in definition.elements if name in (each.id, each.name)]
    return found


def only(xml: str, name: str = "task") -> Element:
    [definition] = read_bpmn(xml)
    return element(definition, name)


def refused(xml: str) -> BpmnError:
    with pytest.raises(BpmnError) as caught:
        read_bpmn(xml)
    return caught.value


# --- the ten models -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_each_of_our_models_is_read_with_its_drawing(name: str) -> None:
    definition = model(name)
    assert f"{definition.id}.bpmn" == name
    assert definition.name
    assert definition.drawing is not None
    assert [shape.id for shape in definition.drawing.shapes] == [
        each.id for each in definition.elements
    ]
    assert [edge.id for edge in definition.drawing.edges] == [each.id for each in definition.flows]


def test_there_are_ten_models_and_they_use_all_that_runs() -> None:
    from lxml import etree

    used: set[tuple[str, str]] = set()
    for name in FILES:
        for node in etree.parse(MODELS / name).iter("{*}*"):
            tag = etree.QName(node).localname
            events = [etree.QName(each).localname for each in node.iterchildren("{*}*")]
            events = [each for each in events if each.endswith("EventDefinition")]
            used |= {(tag, event) for event in events or [""]}
    assert len(FILES) == 10
    runs = {(row.element, row.event) for row in SUPPORT if row.holdfast is Verdict.RUNS}
    assert runs - used == set()


def test_a_service_task_is_a_job_with_its_headers_and_mappings() -> None:
    found = element(model("order-fulfilment.bpmn"), "Reserve stock")
    assert found.kind is ElementKind.JOB
    assert found.job == JobSpec(
        "reserve-stock", "4", (("warehouse", "main"), ("strategy", "nearest"))
    )
    assert found.inputs == (Mapping("order.items", "items"),)
    assert found.outputs[0] == Mapping("reservation", "order.reservation")


def test_what_is_said_about_people_is_told_in_headers() -> None:
    found = element(model("invoice-approval.bpmn"), "Approve invoice")
    assert found.drawn_as == "userTask"
    assert found.job is not None
    assert found.job.type == "io.camunda.zeebe:userTask"
    assert dict(found.job.headers)["io.camunda.zeebe:candidateGroups"] == "accounting"
    assert dict(found.job.headers)["io.camunda.zeebe:formId"] == "approve-invoice"


def test_a_thrown_message_is_a_job() -> None:
    end = element(model("invoice-approval.bpmn"), "Supplier informed")
    assert (end.kind, end.drawn_as) == (ElementKind.JOB, "endEvent")
    thrown = element(model("newsletter.bpmn"), "Issue announced")
    assert (thrown.kind, thrown.drawn_as) == (ElementKind.JOB, "intermediateThrowEvent")


def test_events_wait_for_what_is_drawn() -> None:
    onboarding = model("employee-onboarding.bpmn")
    receive = element(onboarding, "Wait for signed contract")
    assert (receive.kind, receive.drawn_as) == (ElementKind.CATCH, "receiveTask")
    assert receive.message == Message("contract-signed", "employee.id")
    reminder = element(onboarding, "3 days")
    assert (reminder.host, reminder.interrupting) == (receive.id, False)
    assert reminder.timer == Timer(TimerKind.DURATION, "P3D")
    start = element(model("insurance-claim.bpmn"), "Claim filed")
    assert start.message == Message("claim-filed")
    assert element(model("insurance-claim.bpmn"), "Anything else").error == ""


def test_a_multi_instance_activity_is_a_loop() -> None:
    assert element(model("nightly-import.bpmn"), "Import file").loop == Loop(
        "files", "file", True, "results", "{file: file.name, rows: rows}"
    )
    assert element(model("newsletter.bpmn"), "Send issue").loop == Loop(
        "subscribers",
        "subscriber",
        False,
        "receipts",
        "{email: subscriber.email, bounced: bounced}",
        "numberOfCompletedInstances > 0 and count(receipts[bounced = true]) > 100",
    )


def test_a_call_says_what_it_gives_and_takes() -> None:
    onboarding = model("employee-onboarding.bpmn")
    narrow, wide = element(onboarding, "Create accounts"), element(onboarding, "Order equipment")
    assert (narrow.called, narrow.pass_all, narrow.take_all) == ("create-accounts", False, False)
    assert (wide.called[0], wide.pass_all, wide.take_all) == ("=", True, True)


# --- what a text means ----------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["serviceTask", "sendTask", "businessRuleTask", "scriptTask"])
def test_a_task_without_a_definition_has_its_id_as_type(tag: str) -> None:
    found = only(task(tag=tag))
    assert found.job == JobSpec("task", "2")


@pytest.mark.parametrize(
    ("attempts", "failures"),
    [("3", "2"), ("1", "0"), ("0", "0"), ("=n", "=(n) - 1"), ("=(n) + 1", "=n")],
)
def test_attempts_are_failures_and_one(attempts: str, failures: str) -> None:
    found = only(task(f'<zeebe:taskDefinition type="t" retries="{attempts}" />'))
    assert found.job == JobSpec("t", failures)


@pytest.mark.parametrize(
    ("source", "expression"),
    [
        ("= order.id ", "order.id"),
        ("demo@example.com", '"demo@example.com"'),
        ("42", "42"),
        ("say &quot;hi&quot;", '"say \\"hi\\""'),
    ],
)
def test_a_source_is_an_expression_or_a_value(source: str, expression: str) -> None:
    io = f'<zeebe:ioMapping><zeebe:input source="{source}" target="x" /></zeebe:ioMapping>'
    assert only(task(io)).inputs == (Mapping(expression, "x"),)


def test_a_job_may_keep_its_whole_result() -> None:
    result = '<h:result xmlns:h="https://holdfast.dev/schema/bpmn/1.0" variable="answer" />'
    assert only(task(result)).result == "answer"


def test_a_condition_that_reads_as_feel_is_feel_whatever_it_calls_itself() -> None:
    flows = """<bpmn:exclusiveGateway id="g" default="no" />
      <bpmn:sequenceFlow id="f" sourceRef="start" targetRef="g" />
      <bpmn:sequenceFlow id="yes" sourceRef="g" targetRef="end"><bpmn:conditionExpression
        xsi:type="bpmn:tFormalExpression" language="http://www.w3.org/1999/XPath">= total &gt; 5
      </bpmn:conditionExpression></bpmn:sequenceFlow>
      <bpmn:sequenceFlow id="no" sourceRef="g" targetRef="end" />"""
    [definition] = read_bpmn(file(flows))
    assert [flow.condition for flow in definition.flows] == ["", "total > 5", ""]


def test_only_executable_processes_are_read_unless_drafts_are_asked_for() -> None:
    start = '<bpmn:startEvent id="{0}s" />'
    process = '<bpmn:process id="{0}"{1}>' + start + "</bpmn:process>"
    said = ' isExecutable="true"'
    xml = HEAD + process.format("a", said) + process.format("b", "") + "</bpmn:definitions>"
    assert [each.id for each in read_bpmn(xml)] == ["a"]
    assert [each.id for each in read_bpmn(xml, drafts=True)] == ["a", "b"]
    error = refused(xml.replace("true", "false"))
    assert "none of its 2 has isExecutable='true'" in error.message


def test_the_encoding_that_a_text_declares_is_out_of_date() -> None:
    xml = task(attributes='name="Prüfen"').replace("UTF-8", "ISO-8859-1")
    assert only(xml).name == "Prüfen"
    [definition] = read_bpmn(xml.encode("iso-8859-1"))
    assert element(definition, "task").name == "Prüfen"


def test_a_process_that_is_drawn_on_several_planes_has_no_drawing() -> None:
    text = (MODELS / "nightly-import.bpmn").read_text()
    inner = element(model("nightly-import.bpmn"), "Download").id
    shape = f'bpmnElement="{inner}">'
    [definition] = read_bpmn(
        text.replace(f'{shape}\n        <dc:Bounds x="', f'{shape}<dc:Bounds x="9')
    )
    assert definition.drawing is None
    [definition] = read_bpmn(text.replace(shape, 'bpmnElement="other">'))
    assert definition.drawing is None


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    ('<bpmn:complexGateway id="x" />', "<complexGateway> 'x'"),
    ('<bpmn:transaction id="x" />', "<transaction> 'x'"),
    ('<bpmn:adHocSubProcess id="x" />', "<adHocSubProcess> 'x'"),
    ('<bpmn:subProcess id="x" triggeredByEvent="true" />', "<subProcess> 'x', with triggeredBy"),
    ('<bpmn:receiveTask id="x" instantiate="true" />', "<receiveTask> 'x', with instantiate"),
    ('<bpmn:eventBasedGateway id="x" instantiate="true" />', "<eventBasedGateway> 'x', with"),
    ('<bpmn:task id="x" isForCompensation="true" />', "<task> 'x', with isForCompensation"),
    ('<bpmn:task id="x" startQuantity="2" />', "<task> 'x', with startQuantity"),
    (
        '<bpmn:task id="x"><bpmn:standardLoopCharacteristics /></bpmn:task>',
        "<standardLoopCharacteristics> in 'x'",
    ),
    (
        '<bpmn:task id="x"><bpmn:multiInstanceLoopCharacteristics /></bpmn:task>',
        "<multiInstanceLoopCharacteristics> in 'x', without it",
    ),
    ('<bpmn:scriptTask id="x"><bpmn:script>1</bpmn:script></bpmn:scriptTask>', "<script> in 'x'"),
    ('<bpmn:callActivity id="x" />', "<callActivity> 'x', without it"),
    ('<bpmn:callActivity id="x" calledElement="g" />', "which calls the global task 'g'"),
    ('<bpmn:receiveTask id="x" messageRef="m" />', "<receiveTask> 'x', which waits for it without"),
    ('<bpmn:intermediateCatchEvent id="x" />', "<intermediateCatchEvent> 'x', without one"),
    ('<bpmn:conversation2 id="x" />', "<conversation2> 'x'"),
    (
        '<bpmn:sequenceFlow id="x" sourceRef="start" targetRef="end"><bpmn:conditionExpression>'
        "${a == 1}</bpmn:conditionExpression></bpmn:sequenceFlow>",
        "<conditionExpression> in 'x', in the language of another engine",
    ),
    *(
        (f'<bpmn:{tag} id="x"><bpmn:{kind}EventDefinition id="d" /></bpmn:{tag}>', f"<{kind}Event")
        for tag, kinds in {
            "startEvent": ("signal", "error", "escalation", "compensate", "conditional"),
            "intermediateThrowEvent": ("signal", "escalation", "compensate", "link"),
            "intermediateCatchEvent": ("signal", "conditional", "link"),
            "boundaryEvent": ("signal", "escalation", "compensate", "conditional", "cancel"),
            "endEvent": ("signal", "escalation", "compensate", "cancel"),
        }.items()
        for kind in kinds
    ),
    *(
        (
            f'<bpmn:task id="x"><bpmn:extensionElements><zeebe:{name} /></bpmn:extensionElements>'
            "</bpmn:task>",
            f"<zeebe:{name}> in 'x'",
        )
        for name in ("calledDecision", "executionListeners", "taskListeners", "whatever")
    ),
]


@pytest.mark.parametrize(("inside", "words"), REFUSED)
def test_what_does_not_run_is_refused_by_name_and_line(inside: str, words: str) -> None:
    error = refused(
        file(f"\n\n{inside}", '<bpmn:globalTask id="g" /><bpmn:message id="m" name="m"/>')
    )
    assert error.message.startswith("Expected ")
    assert f"line 7 has {words}" in error.message or words in error.message
    assert (error.element, error.line) == ("x", 7)
    assert (error.code, error.problems[0].line) == (Code.INVALID_ARGUMENT, 7)


def test_all_that_is_wrong_is_told() -> None:
    bad = "\n".join(f'<bpmn:complexGateway id="x{n}" />' for n in range(3))
    error = refused(file(bad))
    assert error.message.endswith("which is not supported (and 2 more problems)")
    assert [(each.element, each.line) for each in error.problems] == [
        ("x0", 5),
        ("x1", 6),
        ("x2", 7),
    ]
    assert isinstance(error, InvalidArgument)


def test_a_flow_to_nowhere_is_told_beside_elements_that_do_not_run() -> None:
    error = refused(
        file(
            '\n<bpmn:complexGateway id="x" />'
            '\n<bpmn:sequenceFlow id="f" sourceRef="start" targetRef="x" />'
            '\n<bpmn:sequenceFlow id="g" sourceRef="start" targetRef="nowhere" />'
        )
    )
    assert [(each.element, each.line) for each in error.problems] == [("x", 6), ("g", 8)]


def test_a_process_that_makes_no_sense_is_refused_with_the_line() -> None:
    flow = '<bpmn:sequenceFlow id="f" sourceRef="start" targetRef="nowhere" />'
    error = refused(file(f"\n{flow}"))
    assert (error.element, error.line) == ("f", 6)
    assert error.message.endswith("(line 6)")


def test_the_table_has_each_element_once() -> None:
    rows = [(row.element, row.event) for row in SUPPORT]
    assert len(rows) == len(set(rows))
    assert all(row.zeebe for row in SUPPORT)
