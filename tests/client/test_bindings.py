"""Which version a call starts: the latest, the one deployed together with it, or one by its tag."""

import pytest
from msgspec.structs import replace

import holdfast.testing
from holdfast.model.bpmn import read_bpmn, write_bpmn
from holdfast.model.check import ModelError
from holdfast.model.definition import Binding, Definition, ElementKind
from holdfast.model.dsl import Process
from holdfast.testing import TestApp


def caller(
    binding: Binding, id_: str = "caller", called: str = "callee", tag: str = ""
) -> Definition:
    """A process that calls another one, bound like this."""
    together, inputs = binding is Binding.DEPLOYMENT, {"n": "n - 1"}
    process = Process(id_).call(
        "go", process=called, together=together, version_tag=tag, inputs=inputs
    )
    definition = process.definition()
    [call] = [each for each in definition.elements if each.kind is ElementKind.CALL]
    assert call.binding is binding
    return definition


def callee(value: int, tag: str = "", id_: str = "callee") -> Definition:
    """A process that gives a value, so that one sees which version ran."""
    process = Process(id_, version_tag=tag)
    return process.compute("give", str(value), result="got").definition()


def got(app: TestApp, process_id: str = "caller", **variables: object) -> object:
    instance = app.start(process_id, {"n": 0, **variables})
    app.run_all()
    return instance.result()["got"]


def test_a_call_starts_the_latest_version_unless_it_is_bound() -> None:
    with holdfast.testing.app() as app:
        app.deploy(caller(Binding.LATEST), callee(1))
        app.deploy(callee(2))
        assert got(app) == 2


def test_a_call_stays_with_what_was_deployed_together_with_it() -> None:
    with holdfast.testing.app(partitions=3) as app:
        app.deploy(caller(Binding.DEPLOYMENT), callee(1))
        app.deploy(callee(2))
        assert [got(app) for _ in range(3)] == [1, 1, 1], "on every partition"
        [_, second] = app.deploy(callee(3), caller(Binding.DEPLOYMENT))
        assert (second.process_id, second.version, second.created) == ("caller", 2, True)
        app.deploy(callee(4))
        assert got(app) == 3


def test_the_same_deployment_again_is_no_new_version() -> None:
    with holdfast.testing.app() as app:
        first = app.deploy(caller(Binding.DEPLOYMENT), callee(1))
        again = app.deploy(caller(Binding.DEPLOYMENT), callee(1))
        assert [each.created for each in first] == [True, True]
        assert [each.created for each in again] == [False, False]
        app.deploy(callee(2))
        back = app.deploy(caller(Binding.DEPLOYMENT), callee(1))
        assert [each.version for each in back] == [2, 3], "what it calls is another version"
        [child] = [each for each in app.definitions() if each.process_id == "callee"][2:]
        assert child.version == 3
        assert got(app) == 1


def test_processes_that_call_each_other_are_bound_both_ways() -> None:
    with holdfast.testing.app() as app:
        one = caller(Binding.DEPLOYMENT, "one", '=if n = 0 then "callee" else "two"')
        two = caller(Binding.DEPLOYMENT, "two", '=if n = 0 then "callee" else "one"')
        app.deploy(one, two, callee(1))
        app.deploy(one, two, callee(2))
        app.deploy(callee(9), Process("one").compute("x", "8", result="got"))
        app.deploy(Process("two").compute("x", "7", result="got"))
        for version in (1, 2):
            instance = app.start("one", {"n": 3}, version=version)
            app.run_all()
            assert instance.result()["got"] == version


def test_a_call_of_what_was_not_deployed_together_is_an_incident() -> None:
    with holdfast.testing.app() as app:
        app.deploy(callee(1))
        app.deploy(caller(Binding.DEPLOYMENT))
        app.start("caller", {"n": 0})
        app.run_all()
        [incident] = app.incidents()
        assert incident.reason == "CALLED_PROCESS_MISSING"
        assert "'callee' that was deployed together with version 1" in incident.error


def test_a_call_by_a_tag_starts_the_latest_version_that_has_it() -> None:
    with holdfast.testing.app() as app:
        app.deploy(caller(Binding.VERSION_TAG, tag="stable"), callee(1, "stable"))
        app.deploy(callee(2, "beta"))
        assert got(app) == 1
        app.deploy(callee(3, "stable"))
        app.deploy(callee(4))
        assert got(app) == 3


def test_a_call_by_a_tag_that_nothing_has_is_an_incident_until_something_has() -> None:
    with holdfast.testing.app() as app:
        app.deploy(caller(Binding.VERSION_TAG, tag="stable"), callee(1))
        instance = app.start("caller", {"n": 0})
        app.run_all()
        [incident] = app.incidents()
        assert "'callee' with the version tag 'stable'" in incident.error
        app.deploy(callee(2, "stable"))
        app.retry_incident(incident.incident_key)
        app.run_all()
        assert instance.result()["got"] == 2


def test_a_call_is_bound_in_one_way() -> None:
    with pytest.raises(ModelError, match="together or a version_tag"):
        Process("p").call("go", process="q", together=True, version_tag="v1")


def test_bindings_and_tags_are_written_as_they_are_read() -> None:
    for binding, tag in ((Binding.DEPLOYMENT, ""), (Binding.VERSION_TAG, "v1.2")):
        definition = replace(caller(binding, tag=tag), version_tag="own")
        [again] = read_bpmn(write_bpmn(definition))
        assert replace(again, drawing=None) == definition
