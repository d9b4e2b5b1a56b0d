"""What a worker does when a part of a report was not taken."""

import asyncio
from typing import Any

from holdfast import Holdfast
from holdfast.gateway.tasks.shapes import Answer, JobCompletion


def test_only_what_was_not_taken_is_reported_again() -> None:
    """Jobs of a partition that is away are told again; those that were refused are lost."""
    heard: list[list[str]] = []

    async def report(items: list[JobCompletion]) -> list[Answer]:
        heard.append([each.job_key for each in items])
        if len(heard) == 1:
            codes: dict[str, str | None] = {"1": None, "2": "UNAVAILABLE", "3": "NOT_FOUND"}
        elif len(heard) == 2:
            codes = {"2": "MOVED"}
        else:
            codes = {"2": None}
        return [Answer(each.job_key, codes[each.job_key], "words") for each in items]

    async def story(worker: Any) -> int:
        return await worker._tell(report, [JobCompletion(key, "9") for key in ("1", "2", "3")])

    with Holdfast.connect("http://127.0.0.1:1") as app:

        @app.task
        def nothing() -> None: ...

        worker = app.worker()
        assert asyncio.run(story(worker)) == 2
        assert worker.lost == 1
    assert heard == [["1", "2", "3"], ["2"], ["2"]]
