"""A call with a wrong argument is refused where it is made, in the words of the Python API."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import InvalidArgument


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    with Holdfast.open(tmp_path_factory.mktemp("node"), workers=0) as app:
        app.task(_report)
        yield app


def _report(day: int = 0) -> str:
    return str(day)


def _bound(app: Holdfast) -> Any:
    return app.tasks["_report"].bind()


_CALLS: dict[str, tuple[Callable[[Holdfast], Any], str]] = {
    "delay in words": (
        lambda app: _bound(app).submit(delay="soon"),
        "Expected delay to be a number of seconds or a timedelta, but found 'soon' (str)",
    ),
    "negative delay": (
        lambda app: _bound(app).submit(delay=timedelta(seconds=-1)),
        "Expected delay of at least 0 seconds",
    ),
    "endless delay": (
        lambda app: _bound(app).submit(delay=float("inf")),
        "Expected delay of at least 0 seconds, but found inf",
    ),
    "priority": (
        lambda app: _bound(app).submit(priority=10**9),
        "Expected a priority from -1000000 to 1000000, but found 1000000000",
    ),
    "due": (lambda app: _bound(app).submit(due="2026"), "Expected due to be datetime"),
    "key": (lambda app: _bound(app).submit(key=7), "Expected key to be str, but found 7 (int)"),
    "task without arguments": (
        lambda app: app.submit(app.tasks["_report"]),  # pyright: ignore[reportArgumentType]
        "found the task _report without arguments: use _report.bind(...)",
    ),
    "one of many": (
        lambda app: app.submit_many([_bound(app), None]),
        "Expected a task with its arguments, but found None",
    ),
    "schedule of a task without arguments": (
        lambda app: app.schedule("s", app.tasks["_report"], every=1),  # pyright: ignore[reportArgumentType]
        "use _report.bind(...)",
    ),
    "schedule without a time": (
        lambda app: app.schedule("s", _bound(app)),
        "Expected a schedule with cron or with every, but found neither",
    ),
    "schedule with two": (
        lambda app: app.schedule("s", _bound(app), every=1, cron="* * * * *"),
        "but found both",
    ),
    "interval too short": (
        lambda app: app.schedule("s", _bound(app), every=0.01),
        "Expected every to be at least 0.1 s, but found 0.01",
    ),
    "incident": (
        lambda app: app.retry_incident(12),  # pyright: ignore[reportArgumentType]
        "Expected incident_key to be str, but found 12 (int)",
    ),
    "handle": (lambda app: app.handle(12), "Expected key to be str"),  # pyright: ignore[reportArgumentType]
    "instance": (lambda app: app.instance(12), "Expected key to be str"),  # pyright: ignore[reportArgumentType]
    "process": (lambda app: app.start(12), "Expected process_id to be str"),  # pyright: ignore[reportArgumentType]
    "variables": (
        lambda app: app.start("order", ["x"]),  # pyright: ignore[reportArgumentType]
        "Expected variables as a dict, but found ['x'] (list)",
    ),
    "message": (lambda app: app.publish(5, "k"), "Expected name to be str"),  # pyright: ignore[reportArgumentType]
    "missing file": (
        lambda app: app.deploy("missing.bpmn"),
        "Cannot read the BPMN file missing.bpmn: no such file or directory",
    ),
    "folder": (lambda app: app.deploy("."), "Cannot read the BPMN file .: is a directory"),
}


@pytest.mark.parametrize("name", _CALLS)
def test_a_wrong_argument_is_refused_by_its_name(app: Holdfast, name: str) -> None:
    call, message = _CALLS[name]
    with pytest.raises(InvalidArgument) as raised:
        call(app)
    assert message in raised.value.message


def test_a_binary_file_is_refused_as_such(app: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "picture.bpmn").write_bytes(b"\x89PNG")
    with pytest.raises(InvalidArgument, match=r"picture\.bpmn is not UTF-8"):
        app.deploy(tmp_path / "picture.bpmn")
