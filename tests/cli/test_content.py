"""`holdfast content`: a site gets to its subscribers, and who is stuck is seen and helped."""

import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.shell import Shell

from holdfast.cli.content.running import _Told
from holdfast.content.subscriber.conditions import SubscriberCondition


@pytest.fixture
def site(shell: Shell) -> Path:
    pages = shell.folder / "site" / "pages"
    pages.mkdir(parents=True)
    (pages / "home.html").write_text("hello")
    (shell.folder / "site" / "large.bin").write_bytes(bytes(200_000))
    return shell.folder / "site"


def test_a_site_is_published_and_taken(shell: Shell, site: Path) -> None:
    shell.serve_node()
    done = shell.run("content", "publish", "site", "./site", "--id", "first", "--json")
    assert done.code == 0, done.err
    assert done.json == {"packageId": "first", "offset": 0, "number": 1, "waitedMs": 0}
    assert shell.run("content", "publish", "site", "./site", "--id", "first", "--json").json == (
        done.json
    ), "once"
    running = shell.begin(
        "content", "subscribe", "edge-7", "--of", "site", "--into", "www", "--editable"
    )
    assert running.started["subscriber"] == "edge-7"
    once = shell.run(
        "content", "subscribe", "edge-8", "--of", "site", "--into", "8.sqlite", "--once"
    )
    assert (once.code, once.err) == (0, "")
    assert "stopped: 1 imported" in once.out
    (site / "pages" / "home.html").write_text("hello again")
    said = shell.run("content", "publish", "site", "site", "--path", "/pages", "--metadata", "a=b")
    assert said.code == 0 and said.out.startswith("site 2  at offset 1  package ")
    table = shell.run("content", "queues", "site").out.splitlines()
    assert table[0].split()[:4] == ["SUBSCRIBER", "STATE", "LAG", "OFFSET"]
    assert table[2].split()[:4] == ["edge-8", "RUNNING", "1", "0"]
    page = shell.run("content", "queues", "site", "edge-8", "--json").json
    assert [(each["number"], each["paths"]) for each in page["items"]] == [(2, ["/pages"])]
    deadline = time.monotonic() + 30
    while shell.run("content", "queues", "site", "edge-7", "--json").json["length"]:
        assert time.monotonic() < deadline, "edge-7 does not take it"
        time.sleep(0.05)
    snapshot = shell.run("content", "snapshot", "edge-7", "--json")
    assert snapshot.code == 0 and snapshot.json["publishers"] == ["site"], snapshot.err
    farm = shell.run("content", "topology", "site", "--json").json
    assert (farm["subscribers"], farm["slowest"], farm["lagMax"]) == (2, "edge-8", 1)
    assert "edge-8 (1)" in shell.run("content", "topology").out
    assert "slowest      edge-8, 1 behind" in shell.run("content", "topology", "site").out
    assert shell.run("content", "cleanup", "--json").json["removed"] == 0
    ended = running.end(signal.SIGTERM)
    assert ended.code == 0 and '"event":"stopped"' in ended.out, ended.err
    assert (shell.folder / "www" / "pages" / "home.html").read_text() == "hello again"
    assert (shell.folder / "www" / "large.bin").stat().st_size == 200_000
    seeded = shell.run(
        "content", "subscribe", "edge-9", "--of", "site", "--into", "9.sqlite",
        "--seed-from", "edge-7", "--once",
    )  # fmt: skip
    assert seeded.code == 0 and "0 imported" in seeded.out, "the snapshot has it all"


def test_what_is_wrong_is_said_with_an_exit_code(shell: Shell, site: Path) -> None:
    shell.serve_node()
    for arguments, code, words in (
        (("publish", "site"), 2, "a SOURCE to publish from"),
        (("publish", "site", "--delete"), 2, "name what is meant"),
        (("publish", "site", "--delete", "--test"), 2, "one of --delete"),
        (("publish", "site", "./site", "--path", "/none"), 3, "/none"),
        (("publish", "site", "./sit"), 3, "there is no content repository and no folder"),
        (("publish", "site", "sit.sqlite"), 3, "there is no content repository and no folder"),
        (("publish", "site", "./site", "--metadata", "x"), 2, "NAME=VALUE"),
        (("publish", "a/b", "--test"), 2, "without /"),
        (("queues", "site"), 3, "this node has no publisher and no subscriber yet"),
        (("retry", "site", "edge-7"), 2, "an OFFSET or --all"),
        (("forget", "edge-7"), 3, "this node has no publisher and no subscriber yet"),
    ):
        done = shell.run("content", *arguments)
        assert done.code == code and words in done.err, (arguments, done.code, done.err)
    assert shell.run("content", "topology").out == "nothing has been published\n"
    assert not (site.parent / "sit").exists() and not (site.parent / "sit.sqlite").exists()
    (site / "link").symlink_to("/etc/passwd")
    assert shell.run("content", "publish", "linked", "./site").code != 0
    done = shell.run("content", "publish", "linked", "./site", "--skip-links")
    assert done.code == 0 and "left out" in done.err
    assert shell.run("content", "publish", "site", "--test").code == 0
    done = shell.run("content", "publish", "site", "--delete", "--path", "/a")
    assert done.code == 0 and done.out.startswith("site 1 ")
    assert shell.run("content", "queues", "site").out == "there are no subscribers\n"


@pytest.mark.parametrize(("once", "lines"), [(False, ["IDLE  3 imported"]), (True, [])])
def test_being_idle_is_no_news_of_a_subscriber_that_stops_then(
    capsys: pytest.CaptureFixture[str], once: bool, lines: list[str]
) -> None:
    idle: Any = SimpleNamespace(
        name="edge-7", condition=SubscriberCondition.IDLE, reason="", imported=3, lag=0, ready=True
    )
    _Told(idle, as_json=False, once=once).look()
    assert capsys.readouterr().out.splitlines() == lines
