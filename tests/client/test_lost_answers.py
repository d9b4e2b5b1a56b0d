"""A request whose answer is lost is sent again, and what it asks for is done once."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest
from lossy import LossyProxy, lossy
from tests.cli.shell import Shell
from waiting import WAIT

from holdfast import Holdfast, Process, Unknown
from holdfast.gateway.identity.shapes import NewToken
from holdfast.gateway.tasks.shapes import TaskQuery
from holdfast.limits import REQUEST_ITEMS_MAX

numbers = count()


class Scene(NamedTuple):
    app: Holdfast
    proxy: LossyProxy
    parcel: Any

    def tasks(self, type_: str = "parcel") -> list[Any]:
        query = TaskQuery(type_, limit=1000)
        return self.app.portal.call(self.app.api.tasks.page(query)).items


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("node"))
    shell.serve_node(partitions=2)
    yield shell
    shell.close()


@pytest.fixture
def scene(shell: Shell) -> Iterator[Scene]:
    with lossy(shell.url) as proxy, Holdfast.connect(proxy.url) as app:

        @app.task
        def parcel(number: int) -> int:
            return number

        for each in app.portal.call(app.api.tasks.page(TaskQuery(limit=1000))).items:
            app.handle(each.task_key).cancel()
        yield Scene(app, proxy, parcel)


@pytest.mark.parametrize("losses", [1, 3])
@pytest.mark.parametrize(
    "submit",
    [
        lambda scene: [scene.parcel.submit(1)],
        lambda scene: [scene.parcel.submit(1, key=f"one {next(numbers)}")],
        lambda scene: scene.app.submit_many([scene.parcel.bind(n) for n in range(30)]),
        lambda scene: scene.app.submit_many(
            [scene.parcel.bind(n) for n in range(30)],
            keys=[f"many {next(numbers)}" for _ in range(30)],
        ),
    ],
    ids=["one", "with a key", "many", "many with keys"],
)
def test_tasks_are_submitted_once_and_their_handles_are_right(
    scene: Scene, submit: Callable[[Scene], list[Any]], losses: int
) -> None:
    scene.proxy.losses = losses
    handles = submit(scene)
    assert scene.proxy.lost == losses
    assert sorted(each.task_key for each in scene.tasks()) == sorted(each.key for each in handles)
    assert all(each.created for each in handles)


def test_more_tasks_than_get_ids_are_submitted_again_if_they_have_keys(scene: Scene) -> None:
    tasks = [scene.parcel.bind(number) for number in range(REQUEST_ITEMS_MAX + 1)]
    scene.proxy.losses = 1
    with pytest.raises(Unknown, match="What has a key of its own can be repeated at once"):
        scene.app.submit_many(tasks)
    assert len(scene.tasks()) == len(tasks), "they were stored once"
    scene.proxy.losses = 2
    handles = scene.app.submit_many(tasks, keys=[f"bulk {next(numbers)}" for _ in tasks])
    assert len(scene.tasks()) == 2 * len(tasks) and scene.proxy.lost == 3
    assert len({each.key for each in handles}) == len(tasks)


def test_processes_messages_and_schedules_are_made_once(scene: Scene) -> None:
    app, proxy = scene.app, scene.proxy
    process = Process("order").wait("paid", message="payment", key="number").end("done")
    proxy.losses = 1
    [deployed] = app.deploy(process)
    assert deployed.created and deployed.version == 1
    proxy.losses = 1
    handle = app.start("order", {"number": 1})
    assert [each.process_instance_key for each in app.instances("order")] == [handle.key]
    proxy.losses = 1
    key = app.publish("payment", 1, ttl=60)
    assert handle.result(WAIT)["number"] == 1
    second = app.start("order", {"number": 1})
    assert second.view().process_instance_key == second.key, "a message that came twice ends it"
    second.cancel()
    assert key and proxy.lost == 3
    proxy.losses = 1
    assert app.schedule("nightly", scene.parcel.bind(1), cron="0 3 * * *").schedule_id == "nightly"
    proxy.losses = 1
    app.unschedule("nightly")
    assert proxy.lost == 5


def test_what_is_read_is_asked_for_again(scene: Scene) -> None:
    handle = scene.parcel.submit(1)
    scene.proxy.losses = 2
    assert handle.view().task_key == handle.key
    scene.proxy.losses = 2
    assert len(scene.tasks()) == 1
    scene.proxy.losses = 1
    handle.cancel()  # once: the second time would be refused
    assert scene.proxy.lost == 5


def test_a_result_is_waited_for_over_connections_that_break(scene: Scene, shell: Shell) -> None:
    handle = scene.parcel.submit(7)
    scene.proxy.losses = 3
    with Holdfast.connect(shell.url) as worker:
        worker.task(scene.parcel.function)
        running = worker.worker().start()
        assert handle.result(WAIT) == 7
        running.stop()
    assert scene.proxy.lost == 3


def test_what_cannot_be_repeated_is_told_as_unknown_with_what_to_do(scene: Scene) -> None:
    scene.proxy.losses = 1
    with pytest.raises(Unknown, match=r"POST /v2/tokens .* check that before you repeat it"):
        scene.app.portal.call(scene.app.api.identity.create_token(NewToken("me")))
    assert scene.proxy.lost == 1


def test_patience_that_ends_while_the_answer_is_not_known_says_so(shell: Shell) -> None:
    with lossy(shell.url) as proxy, Holdfast.connect(proxy.url, patience=0.3) as app:

        @app.task(name="late")
        def late() -> None: ...

        proxy.losses = 1_000
        with pytest.raises(Unknown, match="may have been done"):
            late.submit()
        assert proxy.lost > 1
        proxy.losses = 0
        found = app.portal.call(app.api.tasks.page(TaskQuery("late"))).items
        assert len(found) == 1
