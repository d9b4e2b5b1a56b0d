"""Tasks and instances in the console: found, understood, and repaired."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.config import Config
from holdfast.console import life
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, JobFailure
from holdfast.model.dsl import Process

from .conftest import ConsoleSite, SeenPage

TRACE = 'Traceback (most recent call last):\n  File "bank.py", line 3\nValueError: no <funds>'


def _fail(console: ConsoleSite, type_: str) -> None:
    """A worker takes a job and fails for good."""
    jobs = console.call(console.api.jobs.activate(ActivationRequest([type_], wait_ms=5_000)))
    failed = [JobFailure(each.job_key, each.lease, TRACE, final=True) for each in jobs]
    console.call(console.api.jobs.fail(failed))


def _complete(console: ConsoleSite, type_: str) -> None:
    jobs = console.call(console.api.jobs.activate(ActivationRequest([type_], wait_ms=5_000)))
    console.call(
        console.api.jobs.complete([JobCompletion(each.job_key, each.lease) for each in jobs])
    )


def _order(console: ConsoleSite, *tasks: str) -> str:
    process = Process("order", name="An order")
    for each in tasks or ("charge", "ship"):
        process = process.task(each)
    return console.deploy(process)


def _drawn(page: SeenPage) -> str:
    return page.source[page.source.index("<svg xmlns") : page.source.index("</svg>\n</div>")]


# --- lists ------------------------------------------------------------------------------------


def test_tasks_are_listed_filtered_and_say_where_they_come_from(console: ConsoleSite) -> None:
    key, other = console.submit("mail", {"to": "ann"}), console.submit("resize", 7)
    page = console.get("/console/tasks")
    assert page.has(key) and page.has(other)
    assert page.has("From the node's own state, as of now")
    filtered = console.get("/console/tasks?type=mail&state=WAITING")
    assert filtered.has(key) and not filtered.has(other)
    assert console.get("/console/tasks?state=ACTIVE").has("No task fits")
    assert console.get("/console/tasks?state=NONSENSE").status == 400


def test_a_list_goes_on_behind_its_cursor_without_a_gap(console: ConsoleSite) -> None:
    keys = {console.submit("mail", number) for number in range(120)}
    seen: list[str] = []
    path = "/console/tasks?type=mail"
    for _ in range(4):
        page = console.get(path)
        seen += re.findall(r'href="/console/tasks/(\d+)"', page.source)
        following = [each for each in page.links if "after=" in each]
        if not following:
            break
        assert parse_qs(urlsplit(following[-1]).query)["type"] == ["mail"]
        path = following[-1]
    assert len(seen) == 120 and set(seen) == keys


def test_tables_that_are_not_kept_are_named_when_they_are_asked_for(console: ConsoleSite) -> None:
    page = console.get("/console/tasks?from=tables")
    assert page.status == 503 and page.has("holdfast start --pipeline")


def test_instances_are_listed_and_those_with_incidents_are_found(console: ConsoleSite) -> None:
    _order(console)
    stuck = console.start("order", {"order": 1})
    _fail(console, "charge")
    fine = console.start("order", {"order": 2})
    page = console.get("/console/instances")
    assert page.has(stuck) and page.has(fine)
    page = console.get("/console/instances?state=INCIDENT&process=order")
    assert page.has(stuck) and not page.has(fine)
    assert console.get("/console/instances?version=2").has("No instance fits")


# --- one instance -----------------------------------------------------------------------------


def test_a_stuck_instance_shows_why_and_is_repaired(console: ConsoleSite) -> None:
    _order(console)
    key = console.start("order", {"order": "A-1", "note": "<b>"})
    _fail(console, "charge")
    page = console.get(f"/console/instances/{key}")
    assert page.has("An order incident") and page.has("ValueError: no <funds>")
    assert "no <funds>" not in page.source and "<b>" not in page.source.replace("<b>charge", "")
    assert 'data-element="charge"' in _drawn(page) and "#c62a1f" in _drawn(page)
    incident = re.search(r'name="incident" value="(\d+)"', page.source)
    assert incident is not None
    after = console.post(f"/console/instances/{key}/resolve", incident=incident[1])
    assert after.has("its work is tried again") and not after.has("What is stuck")
    assert not console.get(f"/console/instances/{key}").has("its work is tried again")
    _complete(console, "charge")
    assert "#1a5fd0" in _drawn(console.get(f"/console/instances/{key}"))


def test_two_nodes_of_one_program_draw_their_own_processes(
    console: ConsoleSite, tmp_path: Path
) -> None:
    other = ConsoleSite(tmp_path / "other", Config(partitions=2, log_level="critical"))
    try:
        for site, task in ((console, "charge"), (other, "pack")):
            _order(site, task)  # the same key in both
            page = site.get(f"/console/instances/{site.start('order', {})}")
            assert f'data-element="{task}"' in _drawn(page)
    finally:
        other.close()


def test_variables_are_edited_as_json(console: ConsoleSite) -> None:
    _order(console)
    key = console.start("order", {"order": "A-1", "total": 5})
    done = console.post(f"/console/instances/{key}/variables", variables='{"total": [6, "x"]}')
    assert done.has("The variables were set")
    found = console.call(console.api.instances.get(key))
    assert json.loads(bytes(found.variables)) == {"order": "A-1", "total": [6, "x"]}
    for wrong in ("{", "[1]"):
        refused = console.post(f"/console/instances/{key}/variables", variables=wrong)
        assert refused.status == 400 and refused.has("Expected")


def test_a_token_is_moved_added_and_removed(console: ConsoleSite) -> None:
    _order(console)
    key = console.start("order")

    def active() -> list[str]:
        found = console.call(console.api.instances.get(key)).elements
        return sorted(each.element_id for each in found)

    path = f"/console/instances/{key}/tokens"
    assert console.post(path, source="charge", target="ship").has("were moved to ship")
    assert active() == ["ship"]
    assert console.post(path, source="", target="charge").has("charge has a new token")
    assert active() == ["charge", "ship"]
    assert console.post(path, source="charge", target="").has("tokens of charge were removed")
    assert active() == ["ship"]
    assert console.post(path).status == 400


def test_an_instance_is_migrated_with_a_mapping_shown_on_both_drawings(
    console: ConsoleSite,
) -> None:
    _order(console)
    key = console.start("order")
    other = _order(console, "pay", "pack", "ship")
    page = console.get(f"/console/instances/{key}/migration")
    assert page.source.count("<svg xmlns") == 2 and 'name="to:charge"' in page.source
    assert f'name="to" value="{other}"' in page.source
    done = console.post(f"/console/instances/{key}/migration", **{"to": other, "to:charge": "pay"})
    assert done.has("follows the other version now") and done.has("order, version 2")
    [element] = console.call(console.api.instances.get(key)).elements
    assert element.element_id == "pay"


def test_a_canceled_instance_offers_nothing_more_and_its_time_line_tells_of_it(
    console: ConsoleSite,
) -> None:
    _order(console)
    key = console.start("order", {"order": "A-1"})
    other = console.start("order", {"order": "A-2"})
    _fail(console, "charge")
    assert f"/console/instances/{key}/cancel" in console.get(f"/console/instances/{key}").actions
    done = console.post(f"/console/instances/{key}/cancel")
    assert done.has(f"Instance {key} was canceled") and done.actions == []
    line = console.get(f"/console/instances/{key}/life", **{"hx-request": "true"})
    for told in ("process instance created", "job created", "incident created", "canceled"):
        assert line.has(told), told
    assert line.has("The log ends here") and not line.has(other)


def test_the_time_line_of_an_old_instance_is_read_in_pieces(
    console: ConsoleSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    _order(console)
    key = console.start("order")
    monkeypatch.setattr(life, "CONSOLE_LOG_BYTES_MAX", 1)
    first = console.get(f"/console/instances/{key}/life", **{"hx-request": "true"})
    further = re.search(r'hx-get="([^"]*)"', first.source)
    assert further is not None and "keys=" in further[1]
    second = console.get(further[1].replace("&amp;", "&"), **{"hx-request": "true"})
    assert second.status == 200


def test_a_called_instance_and_its_caller_lead_to_each_other(console: ConsoleSite) -> None:
    _order(console)
    console.deploy(Process("parent").call("sub", process="order"))
    key = console.start("parent")
    page = console.get(f"/console/instances/{key}")
    [child] = set(
        re.findall(r"instance <a class=\"key\" href=\"/console/instances/(\d+)", page.source)
    )
    below = console.get(f"/console/instances/{child}")
    assert below.has("Called by") and f"/console/instances/{key}" in below.links


# --- one task ---------------------------------------------------------------------------------


def test_a_failed_task_shows_its_trace_and_is_retried_or_discarded(
    console: ConsoleSite,
) -> None:
    key, other = console.submit("mail", {"to": "ann"}), console.submit("mail", {"to": "bob"})
    for _ in range(2):
        _fail(console, "mail")
    listed = console.get("/console/tasks?state=INCIDENT&type=mail")
    assert listed.has(key) and listed.has(other) and listed.has("ValueError: no <funds>")
    page = console.get(f"/console/tasks/{key}")
    assert page.has("mail incident") and page.has("ValueError: no <funds>") and page.has('"ann"')
    assert console.post(f"/console/tasks/{key}/retry", retries="2").has("is tried again")
    assert console.get(f"/console/tasks/{key}").has("mail waiting")
    assert console.post(f"/console/tasks/{other}/discard").has("was discarded")
    assert console.post(f"/console/tasks/{other}/discard").status == 400


def test_a_waiting_task_is_canceled_and_its_retries_are_set(console: ConsoleSite) -> None:
    key = console.submit("mail", {"to": "ann"})
    assert console.post(f"/console/tasks/{key}/retries", retries="9").has("9 retries left")
    assert console.post(f"/console/tasks/{key}/retries", retries="many").status == 400
    done = console.post(f"/console/tasks/{key}/cancel")
    assert done.has("was canceled") and done.has("mail canceled") and done.actions == []
    line = console.get(f"/console/tasks/{key}/life", **{"hx-request": "true"})
    assert line.has("job created") and line.has("job canceled")


def test_the_job_of_a_process_leads_to_its_instance(console: ConsoleSite) -> None:
    _order(console)
    key = console.start("order")
    page = console.get(f"/console/instances/{key}")
    [job] = set(re.findall(r'href="/console/tasks/(\d+)"', page.source))
    task = console.get(f"/console/tasks/{job}")
    assert f"/console/instances/{key}" in task.links
    assert f"/console/log?key={task.response.url.path.rpartition('/')[2]}" in task.links
    assert f"/console/tasks/{job}/cancel" not in task.actions  # its process would wait for ever


# --- finding ----------------------------------------------------------------------------------


def test_a_key_leads_to_what_has_it(console: ConsoleSite) -> None:
    _order(console)
    instance, task = console.start("order"), console.submit("mail", 1)
    found = console.call(console.api.instances.get(instance))
    element = found.elements[0].element_instance_key
    for key, path in (
        (instance, f"/console/instances/{instance}"),
        (f" {task} ", f"/console/tasks/{task}"),
        (element, f"/console/instances/{instance}"),
    ):
        page = console.get(f"/console/find?key={key}")
        assert page.response.url.path == path, page.text
    assert console.get("/console/find?key=2251799813685248999").has("Nothing has the key")
    assert console.get("/console/find?key=abc").has("Nothing has the key abc")
    assert console.get("/console/find").has("Type the key")
