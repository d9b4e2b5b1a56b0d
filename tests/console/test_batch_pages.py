"""Batch operations in the console: chosen, counted, started, watched, steered, tried again."""

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from holdfast.gateway.batch.shapes import BatchChange, BatchFailureGroup

from .batch_site import BatchSite
from .conftest import ConsoleSite

FILTER = json.dumps({"type": "send"})


@pytest.fixture
def site() -> Iterator[BatchSite]:
    made = BatchSite()
    yield made
    made.close()


def started(site: BatchSite, **fields: str) -> str:
    """The key of an operation that was started by the form."""
    page = site.post("/console/batches/new", do="RETRY_TASK", filter=FILTER, **fields)
    assert page.status == 200 and page.has("The operation is started.")
    return page.response.url.path.rpartition("/")[2]


def test_a_list_links_to_all_that_it_shows(site: BatchSite) -> None:
    asked = {"do": "RETRY_TASK", "type": "send", "failures": '{"$gt": 2}'}
    page = site.get(f"/console/batches/new?{urlencode(asked)}")
    assert page.has('{ "type": "send", "failures": { "$gt": 2 } }')
    assert 'value="RETRY_TASK" selected' in page.source
    assert 'hx-post="/console/batches/preview" hx-trigger="load"' in page.source
    asked = {"do": "CANCEL_PROCESS_INSTANCE", "filter": FILTER}
    whole = site.get(f"/console/batches/new?{urlencode(asked)}")
    assert whole.has('{ "type": "send" }')
    for wrong in ({"do": "DANCE"}, {"do": "RETRY_TASK", "filter": "{"}, {"filter": "[1]"}):
        assert site.get(f"/console/batches/new?{urlencode(wrong)}").status == 400


def test_a_dry_run_counts_by_partition_and_changes_nothing(site: BatchSite) -> None:
    site.dead_letters(12)
    page = site.post("/console/batches/preview", do="RETRY_TASK", filter=FILTER)
    assert page.has("12 items would be chosen") and page.has("Start with 12 items")
    assert page.has(str(site.tables.keys[0])) and "/console/batches/new" in page.actions
    assert site.get("/console/batches").has("No batch operation fits.")
    token = site.get("/console").csrf
    part = site.browser.post(
        "/console/batches/preview", data={"do": "RETRY_TASK", "filter": FILTER},
        headers={"hx-request": "true", "x-csrf-token": token},
    ).text  # fmt: skip
    assert "12 items would be chosen" in part and "<html" not in part
    assert 'name="csrf" value="' in part and 'name="csrf" value=""' not in part


def test_a_filter_that_is_none_is_told_beside_the_form(site: BatchSite) -> None:
    page = site.post("/console/batches/preview", do="RETRY_TASK", filter='{"nonsense": 1}')
    assert page.status == 200 and page.has("but found nonsense") and page.has('"nonsense": 1')
    assert "/console/batches/new" not in page.actions
    assert site.post("/console/batches/preview", do="RETRY_TASK", filter="{").has("Expected JSON")


def test_an_operation_is_started_and_seen_to_its_end(site: BatchSite) -> None:
    site.dead_letters(9)
    key = started(site)
    site.until(key, "COMPLETED")
    page = site.get(f"/console/batches/{key}")
    assert page.has("9 of 9 9 completed") and page.has('"type": "send"')
    assert page.actions == []  # nothing can be done with it
    listed = site.get("/console/batches")
    assert f"/console/batches/{key}" in listed.links and listed.has("9 of 9")
    assert not site.get("/console/batches?state=FAILED").has(key)
    assert site.get("/console/batches?type=RETRY_TASK&state=COMPLETED").has(key)
    assert site.get("/console/batches?state=HAPPY").status == 400


def test_one_that_runs_is_suspended_changed_resumed_and_canceled(site: BatchSite) -> None:
    site.dead_letters(30)
    key = started(site, throttle="1", priority="3")
    here = f"/console/batches/{key}"
    page = site.get(here)
    assert {f"{here}/suspend", f"{here}/cancel", f"{here}/change"} <= set(page.actions)
    assert f'sse-connect="{here}/live"' in page.source
    suspended = site.post(f"{here}/suspend")
    assert suspended.has("The operation is suspended.")
    site.until(key, "SUSPENDED")
    page = site.get(here)
    assert f"{here}/resume" in page.actions and f"{here}/suspend" not in page.actions
    assert site.post(f"{here}/resume").has("The operation goes on.")
    changed = site.post(f"{here}/change", throttle="2", priority="")
    assert changed.has("2 a second") and changed.has("Priority 3")
    assert site.post(f"{here}/change", throttle="fast").status == 400
    site.post(f"{here}/cancel")
    view = site.until(key, "CANCELED")
    assert view.operations_canceled_count > 0
    assert site.get(here).actions == []
    assert site.post(f"{here}/suspend").status == 404


def test_progress_comes_by_itself_and_a_new_state_is_told(site: BatchSite) -> None:
    site.dead_letters(6)
    key = started(site, throttle="1")
    with site.browser.stream("GET", f"/console/batches/{key}/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: progress"
        assert next(each for each in lines if "Items done" in each)
        site.call(site.api.batches.change(key, BatchChange(throttle=0)))
        assert next(each for each in lines if each == "event: state")
        assert next(lines) == "data: COMPLETED"
    feed = f"batch {key}"
    for _ in range(200):
        if site.console.feeds.known(feed) is None:
            break
        site.get("/console/static/none")
    assert site.console.feeds.known(feed) is None, "nothing of it stays"


def test_partitions_that_could_not_select_are_tried_again(site: BatchSite) -> None:
    site.dead_letters(9)
    site.tables.failing = {2}
    broken = started(site)
    site.until(broken, "PARTIALLY_COMPLETED")
    page = site.get(f"/console/batches/{broken}")
    assert page.has("Partition 2: Expected the disk to be there")
    assert page.has("Retry the 1 failed partitions") and not page.has("failed items")
    site.tables.failing = set()
    retried = site.post(f"/console/batches/{broken}/retry", failed="PARTITIONS")
    assert retried.has(f"What failed in {broken} is tried again by this operation.")
    assert retried.has(f"Tries again what failed in {broken}")
    refused = site.post(f"/console/batches/{broken}/retry", failed="ITEMS")
    assert refused.status == 409 and refused.has("has no failed items")


def test_failed_items_are_grouped_by_reason_and_tried_again(site: BatchSite) -> None:
    keys = site.dead_letters(4)
    site.until(started(site), "COMPLETED")
    key = started(site)  # they are no dead letters any more
    site.until(key, "PARTIALLY_COMPLETED")
    here = f"/console/batches/{key}"
    assert site.get(here).has("The tables do not have the failed items yet.")
    site.tables.failure_groups = [
        BatchFailureGroup("INVALID_STATE", "job # is <so>", 4, f"job {keys[0]} is <so>", keys[0])
    ]
    page = site.get(here)
    assert page.has("4 INVALID_STATE job # is <so>") and page.has(f"job {keys[0]} is <so>")
    assert page.has("Retry the 4 failed items")
    retried = site.post(f"{here}/retry", failed="ITEMS")
    assert retried.has(f"Tries again what failed in {key}")


def test_without_tables_the_pages_say_what_to_do(console: ConsoleSite) -> None:
    page = console.get("/console/batches/new?do=RETRY_TASK&type=send")
    assert page.status == 200 and page.has("This node keeps no tables to choose items from.")
    assert page.has("holdfast start --pipeline") and "/console/batches/preview" not in page.actions
    assert console.get("/console/batches").has("No batch operation fits.")
    sent = console.post("/console/batches/new", do="RETRY_TASK", filter=FILTER)
    assert sent.status == 503 and sent.has("holdfast start --pipeline")


def test_an_operation_that_never_was_is_not_found(site: BatchSite) -> None:
    assert site.get("/console/batches/2251799813999999").status == 404
    assert site.get("/console/batches/nonsense").status == 400
