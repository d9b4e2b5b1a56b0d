"""Lists and pages of what ended long ago come from the tables, where they are kept."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.pipeline.select_tables import BASE, SPREAD, START_MS, with_instances

from holdfast.config import Config
from holdfast.pipeline.schema import JOBS

from .conftest import ConsoleSite, SeenPage

TASK = BASE + 7


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleSite]:
    root = tmp_path / "tables"
    tables = with_instances(root, partitions=2, count=60)
    ended = {"type": "mail", "state": "DISCARDED", "failures": 2, "retries": 0, "error": "no luck"}
    tables.put(JOBS, 1, {TASK: ended | {"created": START_MS, "ended": START_MS + 9, "priority": 3}})
    tables.publish({1: 61, 2: 61})
    config = Config(partitions=2, tables=str(root), log_level="critical")
    site = ConsoleSite(tmp_path / "data", config)
    yield site
    site.close()


def _keys(page: SeenPage) -> list[int]:
    return [int(each) for each in re.findall(r'href="/console/instances/(\d+)"', page.source)]


def test_a_list_from_the_tables_says_so_and_goes_on_behind_its_cursor(console: ConsoleSite) -> None:
    path, seen = "/console/instances?sort=started&order=asc", list[int]()
    for _ in range(4):
        page = console.get(path)
        assert page.has("From the tables, as of") and page.has("of 120")
        seen += _keys(page)
        following = [each for each in page.links if "after=" in each]
        if not following:
            break
        path = following[-1]
    assert len(seen) == len(set(seen)) == 120
    assert [each % BASE for each in seen] == sorted(each % BASE for each in seen)


def test_the_tables_sort_and_filter_by_columns(console: ConsoleSite) -> None:
    newest = _keys(console.get("/console/instances"))
    assert {each % BASE for each in newest[:2]} == {60 * SPREAD}
    page = console.get("/console/instances?state=CANCELED&process=process-3&sort=key&order=asc")
    assert {each % BASE // SPREAD for each in _keys(page)} == {3, 31, 59}
    assert 'aria-sort="ascending"' in page.source
    since = datetime.fromtimestamp(START_MS / 1_000 + 59, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert len(_keys(console.get(f"/console/instances?since={since}"))) == 4
    assert console.get("/console/instances?sort=nothing").status == 400
    assert console.get("/console/instances?since=yesterday").status == 400


def test_the_state_is_asked_if_that_is_wanted(console: ConsoleSite) -> None:
    page = console.get("/console/instances?from=state")
    assert page.has("From the node's own state") and page.has("No instance fits")


def test_what_ended_long_ago_has_its_page(console: ConsoleSite) -> None:
    key = BASE + 3 * SPREAD
    page = console.get(f"/console/instances/{key}")
    assert page.has("process-3 canceled") and page.actions == []
    assert console.get(f"/console/find?key={key}").response.url.path.endswith(str(key))
    listed = console.get("/console/tasks?error=luck&state=DISCARDED")
    assert listed.has(str(TASK))
    task = console.get(f"/console/tasks/{TASK}")
    assert task.has("mail discarded") and task.has("no luck") and task.actions == []
