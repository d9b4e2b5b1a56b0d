"""Search: one instance by its key, and pages of what a filter finds among very many."""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

from bench.harness import Figure, Run, benchmark, fixed, remove

INSTANCES = 10_000_000
KEYS = 200
GET_MS_MAX = 20.0
PAGE_MS_MAX = 200.0
NEWEST = [{"field": "started", "order": "DESC"}]
MANY = {"state": "ACTIVE"}
FEW = {"state": "CANCELED", "processId": "process-3", "version": 2}
LIKE = {"processId": {"$like": "process-1*"}, "state": "CANCELED"}

PAGES: tuple[tuple[str, dict[str, Any], list[dict[str, str]] | None], ...] = (
    ("a tenth, by key", MANY, None),
    ("a tenth, newest first", MANY, NEWEST),
    ("0.06%, by key", FEW, None),
    ("0.06%, newest first", FEW, NEWEST),
    ("a pattern, newest first", LIKE, NEWEST),
)


@benchmark("search")
def search(run: Run) -> Iterator[Figure]:
    from bench.ours.instances import write_instances
    from holdfast.pipeline.schema import PROCESS_INSTANCES as TABLE
    from holdfast.pipeline.search.paging import PageRequest, read_sort
    from holdfast.pipeline.search.search import Search
    from holdfast.pipeline.select.filters import read_filter

    root = run.folder("search")
    with ExitStack() as stack:
        stack.callback(remove, root)
        instances = run.scaled(INSTANCES)
        write_instances(root, instances)
        ours = Search(root)
        stack.callback(ours.close)
        some = ours.search(TABLE, page=PageRequest(10_000, offset=5_000)).items
        keys = random.Random(1).sample([item["process_instance_key"] for item in some], KEYS)
        yield Figure(
            name=f"an instance of {instances:,} by its key, p50",
            against="20 ms",
            goal="<= 1",
            unit="ms",
            ours=lambda: _median_ms(lambda n: ours.get(TABLE, keys[n]), KEYS),
            peer=fixed(GET_MS_MAX),
        )
        numbers = count()
        for name, filter, order in PAGES:
            by = read_sort(TABLE, order)

            def page(_: int, filter: Any = filter, by: Any = by) -> object:
                # Not asked before, so that its total is counted and not remembered.
                fresh = filter | {"processInstanceKey": {"$gt": next(numbers)}}
                return ours.search(TABLE, read_filter(TABLE, fresh), by)

            yield Figure(
                name=f"a page of {instances:,} instances and the total, {name}, p50",
                against="200 ms",
                goal="<= 1",
                unit="ms",
                ours=lambda page=page: _median_ms(page, 5),
                peer=fixed(PAGE_MS_MAX),
            )


def _median_ms(call: Callable[[int], object], times: int) -> float:
    spans: list[float] = []
    for number in range(times):
        begun = time.perf_counter()
        call(number)
        spans.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(spans)
