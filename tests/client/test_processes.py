"""Processes in a user's program: deploy, start, wait, decide; embedded, with a real worker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import WAIT, wait_until

from holdfast import (
    BusinessError,
    DeadlineExceeded,
    GiveUpError,
    Holdfast,
    InvalidArgument,
    InvalidState,
    NotFound,
    Process,
    TaskFailed,
    current_job,
    error,
    otherwise,
    over,
    path,
    when,
)

PAYMENT = Process("payment").task(
    "charge",
    headers={"currency": "EUR"},
    on=[error("DECLINED", path().compute("note", '"declined"', result="outcome").end("refused"))],
)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    with Holdfast.open(tmp_path / "data") as opened:
        yield opened


def incident_of(app: Holdfast, process: str) -> Any:
    """The open incident of a process, waiting for it."""
    return wait_until(lambda: app.incidents(process=process))[0]


# --- from start to end ------------------------------------------------------------------------


def test_a_process_written_in_python_is_deployed_started_and_gives_its_variables(
    app: Holdfast,
) -> None:
    @app.task
    def double(number: int) -> dict[str, int]:
        return {"number": number * 2}

    @app.task
    def spell(number: int) -> str:
        return f"number {number}"

    process = (
        Process("sums")
        .task("double")
        .choose(
            when("number > 10", path().compute("big", "true", result="big")),
            otherwise(path().compute("small", "false", result="big")),
        )
        .task("spell", result="spelled")
    )
    (deployed,) = app.deploy(process)
    assert (deployed.process_id, deployed.version, deployed.created) == ("sums", 1, True)
    assert not app.deploy(process)[0].created, "the same program is the same version"

    handle = app.start("sums", {"number": 21})
    assert handle.result(timeout=WAIT) == {"number": 42, "big": True, "spelled": "number 42"}
    assert handle.view().state == "COMPLETED"
    assert app.instance(handle.key).result(timeout=WAIT)["number"] == 42
    assert app.instances("sums") == []


def test_a_worker_gets_the_variables_that_its_function_names_and_no_others(app: Holdfast) -> None:
    seen: list[dict[str, Any]] = []

    @app.task
    def pick(wanted: int, missing: str = "default") -> None:
        seen.append({"wanted": wanted, "missing": missing})

    app.deploy(Process("picky").task("pick"))
    app.start("picky", {"wanted": 1, "unwanted": [2]}).result(timeout=WAIT)
    assert seen == [{"wanted": 1, "missing": "default"}]


def test_a_bpmn_file_is_deployed_and_a_missing_one_is_said_so(
    app: Holdfast, tmp_path: Path
) -> None:
    from holdfast.model.bpmn import write_bpmn

    file = tmp_path / "payment.bpmn"
    file.write_bytes(write_bpmn(PAYMENT.definition()))
    assert app.deploy(file, PAYMENT.definition())[0].process_id == "payment"
    assert [each.version for each in app.definitions("payment", latest=True)] == [1]
    with pytest.raises(InvalidArgument, match=r"nowhere\.bpmn"):
        app.deploy(tmp_path / "nowhere.bpmn")


def test_the_same_key_is_the_same_instance(app: Holdfast) -> None:
    app.deploy(Process("wait").wait("go", message="go", key="name"))
    first = app.start("wait", {"name": "a"}, key="once")
    again = app.start("wait", {"name": "b"}, key="once")
    assert (first.created, again.created) == (True, False)
    assert first.key == again.key
    app.publish("go", "a", {"done": 1})
    assert again.result(timeout=WAIT) == {"name": "a", "done": 1}


def test_many_are_started_together_and_each_has_its_own_variables(app: Holdfast) -> None:
    @app.task
    def square(number: int) -> dict[str, int]:
        return {"square": number * number}

    app.deploy(Process("squares").task("square"))
    handles = app.start_many("squares", ({"number": number} for number in range(200)))
    results = [handle.result(timeout=WAIT) for handle in handles]
    assert [result["square"] for result in results] == [number**2 for number in range(200)]


def test_the_items_of_a_collection_come_back_in_their_order(app: Holdfast) -> None:
    @app.task
    def shout(word: str) -> str:
        return word.upper()

    app.deploy(
        Process("shouts").task(
            "shout",
            each=over("words", item="word", collect="shouted", result="loud"),
            result="loud",
        )
    )
    words = ["one", "two", "three"]
    result = app.start("shouts", {"words": words}).result(timeout=WAIT)
    assert result["shouted"] == ["ONE", "TWO", "THREE"]


def test_the_async_methods_do_the_same_on_another_loop(app: Holdfast) -> None:
    @app.task
    async def add(left: int, right: int) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"sum": left + right}

    app.deploy(Process("adding").task("add"))

    async def story() -> dict[str, Any]:
        handle = await app.start_async("adding", {"left": 1, "right": 2})
        return await handle.result_async(timeout=WAIT)

    assert asyncio.run(story())["sum"] == 3


# --- errors -----------------------------------------------------------------------------------


def test_a_business_error_is_caught_by_its_boundary_in_a_thread(app: Holdfast) -> None:
    @app.task
    def charge(amount: int) -> None:
        raise BusinessError("DECLINED", "no cover", missing=amount)

    app.deploy(PAYMENT)
    result = app.start("payment", {"amount": 5}).result(timeout=WAIT)
    assert (result["outcome"], result["missing"]) == ("declined", 5)


def test_a_business_error_is_caught_by_its_boundary_in_a_coroutine(app: Holdfast) -> None:
    @app.task
    async def charge(amount: int) -> None:
        raise BusinessError("DECLINED", "no cover", missing=amount)

    app.deploy(PAYMENT)
    assert app.start("payment", {"amount": 5}).result(timeout=WAIT)["missing"] == 5


def test_a_business_error_is_caught_by_its_boundary_in_a_child_process(
    process_tasks: Any,
) -> None:
    app: Holdfast = process_tasks.app
    app.deploy(PAYMENT)
    worker = app.worker(concurrency=1, mode="processes").start()
    declined = app.start("payment", {"amount": 5, "cover": 0}).result(timeout=WAIT)
    assert (declined["outcome"], declined["missing"]) == ("declined", 5)
    charged = app.start("payment", {"amount": 5, "cover": 9}).result(timeout=WAIT)
    assert charged["charged"] == "5 EUR", "headers reach the child"
    worker.stop()


def test_a_business_error_that_nothing_catches_is_an_incident(app: Holdfast) -> None:
    @app.task
    def charge() -> None:
        raise BusinessError("STOLEN", "call the police")

    app.deploy(PAYMENT)
    handle = app.start("payment")
    incident = incident_of(app, "payment")
    assert incident.reason == "UNHANDLED_ERROR"
    assert "STOLEN" in incident.error
    assert (incident.process_instance_key, incident.element_id) == (handle.key, "charge")
    [element] = handle.view().elements
    assert incident.task_key == element.job_key is not None


def test_a_business_error_of_a_plain_task_fails_it_for_good(app: Holdfast) -> None:
    @app.task
    def charge() -> None:
        raise BusinessError("DECLINED", "no cover")

    with pytest.raises(TaskFailed, match="DECLINED: no cover"):
        charge.submit().result(timeout=WAIT)


def test_the_current_job_tells_its_process_its_element_and_its_headers(app: Holdfast) -> None:
    @app.task
    def charge() -> dict[str, Any]:
        job = current_job()
        assert job.origin is not None
        return {
            "process": job.origin.process_id, "element": job.origin.element_id,
            "instance": job.origin.process_instance_key, "headers": job.origin.headers,
            "attempt": job.attempt,
        }  # fmt: skip

    @app.task
    def plain() -> bool:
        return current_job().origin is None

    app.deploy(PAYMENT)
    handle = app.start("payment")
    assert handle.result(timeout=WAIT) == {
        "process": "payment", "element": "charge", "instance": handle.key,
        "headers": {"currency": "EUR"}, "attempt": 1,
    }  # fmt: skip
    assert plain.submit().result(timeout=WAIT) is True
    with pytest.raises(InvalidState, match="inside a running task"):
        current_job()


# --- deciding ---------------------------------------------------------------------------------


def test_an_incident_is_seen_in_the_instance_and_its_retry_goes_on(app: Holdfast) -> None:
    @app.task
    def charge(mended: bool = False) -> dict[str, bool]:
        if not mended:
            raise GiveUpError("the bank is closed")
        return {"charged": True}

    app.deploy(PAYMENT)
    handle = app.start("payment")
    incident = incident_of(app, "payment")
    assert [each.process_instance_key for each in app.instances(with_incidents=True)] == [
        handle.key
    ]
    view = handle.view()
    assert (view.incidents, view.elements[0].state) == (1, "INCIDENT")
    assert view.elements[0].incident_key == incident.incident_key
    with pytest.raises(InvalidState, match="modify or cancel"):
        app.discard_incident(incident.incident_key)

    handle.set_variables({"mended": True})
    app.retry_incident(incident.incident_key)
    assert handle.result(timeout=WAIT) == {"mended": True, "charged": True}


def test_a_cancelled_instance_has_no_result(app: Holdfast) -> None:
    app.deploy(PAYMENT)
    handle = app.start("payment")
    with pytest.raises(DeadlineExceeded):
        handle.result(timeout=0)
    handle.cancel()
    with pytest.raises(TaskFailed, match="CANCELED"):
        handle.result(timeout=WAIT)
    assert handle.view().state == "CANCELED"
    with pytest.raises(NotFound):
        handle.cancel()


def test_tokens_are_moved_ended_and_added(app: Holdfast) -> None:
    app.deploy(Process("steps").task("first").task("second").task("third"))
    handle = app.start("steps")
    handle.modify(move={"first": "second"}, variables={"skipped": 1})
    (second,) = handle.view().elements
    assert second.element_id == "second"
    handle.modify(activate=["third"], terminate=[second.element_instance_key])
    assert [each.element_id for each in handle.view().elements] == ["third"]
    with pytest.raises(InvalidArgument, match="nowhere"):
        handle.modify(activate=["nowhere"])

    @app.task
    def third(skipped: int) -> dict[str, int]:
        return {"done": skipped}

    assert handle.result(timeout=WAIT) == {"skipped": 1, "done": 1}


def test_an_instance_goes_on_in_another_version(app: Holdfast) -> None:
    (old,) = app.deploy(Process("bill").task("pay").task("file"))
    handle = app.start("bill")
    (new,) = app.deploy(Process("bill").task("settle").task("pay").task("file").task("burn"))
    handle.migrate(new)
    assert handle.view().version == 2
    assert [each.element_id for each in handle.view().elements] == ["pay"]
    handle.migrate(new.process_definition_key, {"pay": "settle"})
    assert [each.element_id for each in handle.view().elements] == ["settle"]
    with pytest.raises((InvalidArgument, InvalidState), match="settle"):
        handle.migrate(old)


def test_what_is_not_deployed_cannot_be_started(app: Holdfast) -> None:
    with pytest.raises(NotFound, match="unheard-of"):
        app.start("unheard-of")
    app.deploy(PAYMENT)
    with pytest.raises(NotFound, match="7"):
        app.start("payment", version=7)
    with pytest.raises(InvalidArgument, match="JSON"):
        app.start("payment", {"what": object()})
    with pytest.raises(NotFound, match="unknown or no longer kept"):
        app.instance("2251799813999999").result(timeout=WAIT)


# --- messages ---------------------------------------------------------------------------------


def test_a_message_is_kept_for_who_waits_later_and_published_once(app: Holdfast) -> None:
    app.deploy(Process("wait").wait("go", message="go", key="name"))
    app.publish("go", "early", {"came": "early"}, ttl=3600, message_id="one")
    with pytest.raises(Exception, match="one"):
        app.publish("go", "early", message_id="one")
    handle = app.start("wait", {"name": "early"})
    assert handle.result(timeout=WAIT)["came"] == "early"
    app.publish("go", "nobody waits and it is not kept")


def test_a_message_starts_a_process(app: Holdfast) -> None:
    @app.task
    def greet(name: str) -> dict[str, str]:
        seen.append(name)
        return {}

    seen: list[str] = []
    app.deploy(Process("greeting").starts(message="hello").task("greet"))
    app.begin()
    app.publish("hello", variables={"name": "world"})
    assert wait_until(lambda: seen) == ["world"]


def test_processes_outlive_the_node(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "data", workers=0) as app:
        app.deploy(PAYMENT)
        key = app.start("payment", {"amount": 3}).key
    with Holdfast.open(tmp_path / "data") as app:

        @app.task
        def charge(amount: int) -> dict[str, int]:
            return {"charged": amount}

        assert app.instance(key).result(timeout=WAIT) == {"amount": 3, "charged": 3}
