"""The log browser: records listed, filtered, followed, and one of them with its causes."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.errors import HoldfastError
from holdfast.gateway.journal.shapes import RecordFilter, RecordQuery, RecordType
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion

from .conftest import ConsoleSite


def rows(page_source: str) -> list[tuple[str, str]]:
    """The records of a page, by their links in the first column."""
    return re.findall(
        r'<th scope="row"><a class="key" href="/console/log/(\d+)/(\d+)">', page_source
    )


def one(console: ConsoleSite, **wanted: object) -> tuple[int, int]:
    asked = RecordQuery(RecordFilter(**wanted))  # pyright: ignore[reportArgumentType]
    found = console.call(console.api.journal.records(asked)).items[0]
    return found.partition_id, found.position


def test_records_are_listed_newest_first_and_paged_both_ways(console: ConsoleSite) -> None:
    for number in range(40):
        console.submit("mail", {"n": number})
    page = console.get("/console/log")
    assert page.status == 200 and page.has("JOB") and page.has("CREATED")
    first = rows(page.source)
    assert len(first) == 50
    [older] = [each for each in page.links if "older=" in each]
    second = console.get(older)
    assert not set(rows(second.source)) & set(first) and rows(second.source)
    [newer] = [each for each in second.links if "newer=" in each]
    assert rows(console.get(newer).source) == first
    [oldest] = [each for each in page.links if "start=oldest" in each]
    assert ("1", "0") in rows(console.get(oldest).source)


def test_filters_are_kept_in_the_address(console: ConsoleSite) -> None:
    key = console.submit("mail")
    console.submit("other")
    page = console.get(f"/console/log?key={key}&type=EVENT&valueType=JOB&intent=CREATED")
    assert len(rows(page.source)) == 1 and page.has(key)
    assert 'value="EVENT" selected' in page.source and f'value="{key}"' in page.source
    assert console.get("/console/log?valueType=JOB&intent=COMPLETED").has("No record fits.")
    assert console.get("/console/log?since=2100-01-01T00:00").has("No record fits.")
    assert rows(console.get("/console/log?until=2100-01-01T00:00:00").source)
    for wrong in ("type=SONG", "valueType=SONG", "since=never", "partition=x", "partition=9",
                  "key=x", "older=x"):  # fmt: skip
        assert console.get(f"/console/log?{wrong}").status == 400, wrong


def test_a_record_shows_its_value_its_causes_and_what_came_of_it(console: ConsoleSite) -> None:
    key = console.submit("mail", {"to": "<ann>"})
    [job] = console.call(console.api.jobs.activate(ActivationRequest(["mail"], "w", 1)))
    console.call(console.api.jobs.complete([JobCompletion(job.job_key, job.lease)]))
    partition, position = one(
        console, key=key, type=RecordType.EVENT, value_type="JOB", intent="COMPLETED"
    )
    page = console.get(f"/console/log/{partition}/{position}")
    assert page.has("JOB COMPLETED") and page.has(key)
    tree = page.source.partition('<ul class="tree">')[2].partition("</section>")[0]
    assert tree.index("JOB COMPLETE<") < tree.index("JOB COMPLETED<")
    assert tree.count("is-asked") == 1
    created, at = one(console, key=key, type=RecordType.EVENT, intent="CREATED")
    assert console.get(f"/console/log/{created}/{at}").has('"to": "<ann>"')
    assert console.get("/console/log/1/999999").status == 404
    assert console.get("/console/log/1/999999").has("it is not written yet")


def test_a_rejection_says_why(console: ConsoleSite) -> None:
    key = console.submit("mail")
    console.call(console.api.tasks.cancel(key))
    with pytest.raises(HoldfastError):
        console.call(console.api.tasks.cancel(key))
    partition, position = one(console, type=RecordType.REJECTION)
    page = console.get(f"/console/log/{partition}/{position}")
    assert page.has("rejection") and 'class="problem"' in page.source


def test_following_shows_what_comes_and_stops_when_nobody_looks(console: ConsoleSite) -> None:
    console.submit("before")
    page = console.get("/console/log?valueType=JOB&follow=yes")
    [live] = re.findall(r'sse-connect="([^"]*)"', page.source)
    assert live == f"/console/log/live?{urlencode({'valueType': 'JOB'})}"
    with console.browser.stream("GET", live) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: records"
        assert next(each for each in lines if "CREATED" in each)
        key = console.submit("after")
        assert next(each for each in lines if key in each)
        [name] = [each for each in console.console.feeds.names if each.startswith("log ")]
    for _ in range(200):
        if console.console.feeds.known(name) is None:
            break
        console.get("/console/static/none")
    assert console.console.feeds.known(name) is None
    assert console.get("/console/log/live?valueType=SONG").status == 400


def test_followers_get_the_newest_records_and_never_more_than_a_page(console: ConsoleSite) -> None:
    for _ in range(60):
        console.submit("many")
    with console.browser.stream("GET", "/console/log/live") as stream:
        event = ""
        for line in stream.iter_lines():
            event += line + "\n"
            if not line:
                break
    assert len(rows(event)) == 50
