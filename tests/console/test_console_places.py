"""Where the console is: beside every kind of node, and in a program."""

from pathlib import Path

import httpx
import pytest
from tests.cli.shell import Shell

from holdfast import Holdfast, InvalidState
from holdfast.cli.serving import announce_start
from holdfast.config import Config, load_config


def _is_console(url: str) -> bool:
    # The first page of a process is compiled, and waits for the numbers of the other processes:
    # seconds on a busy machine.
    page = httpx.get(url, follow_redirects=True, timeout=60)
    return page.status_code == 200 and "<h1>Overview</h1>" in page.text


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_node_of_two_processes_says_where_its_console_is(shell: Shell) -> None:
    try:
        started = shell.start_node("--processes", "2").started
        assert started["console"] == f"{started['url']}/console"
        for _ in range(4):  # the system chooses a process
            assert _is_console(started["url"])
    finally:
        shell.close()


def test_the_line_of_a_start_is_followed_by_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    announce_start("http://here:1", Path("data"), 4, 0, 1, Config(), as_json=False)
    assert capsys.readouterr().out.splitlines()[1] == "console at http://here:1/console"
    announce_start("http://here:1", Path("data"), 4, 0, 1, Config(console=False), as_json=False)
    assert "console" not in capsys.readouterr().out


def test_it_can_be_switched_off(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "holdfast.toml").write_text("console = false\n")
    assert not load_config(tmp_path / "data", {}).console
    assert load_config(tmp_path / "data", {"HOLDFAST_CONSOLE": "true"}).console
    try:
        started = shell.start_node().started
        assert "console" not in started
        assert httpx.get(f"{started['url']}/console").status_code == 404
    finally:
        shell.close()


def test_an_embedded_app_serves_it_until_it_closes(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "own", workers=0) as app:
        url = app.console()
        assert url.startswith("http://127.0.0.1:") and _is_console(url)
        assert app.console() == url
        with Holdfast.connect(url.removesuffix("/console")) as far:
            assert far.console() == url
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_an_embedded_app_tells_which_of_its_settings_are_from_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "holdfast.toml").write_text("partitions = 3\n")
    for config, source in ((None, ("file", str(folder / "holdfast.toml"))), (Config(), None)):
        config = config and Config(partitions=3)
        with Holdfast.open(folder, workers=0, config=config) as app:
            told = httpx.get(app.console().removesuffix("/console") + "/v2/settings").json()
        [found] = [each for each in told["items"] if each["name"] == "partitions"]
        assert (found["source"], found["place"]) == (source or ("option", "option"))


def test_a_port_that_is_taken_leaves_the_app_as_it_was(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "one", workers=0) as one:
        port = int(one.console().removesuffix("/console").rpartition(":")[2])
        with Holdfast.open(tmp_path / "two", workers=0) as two:
            with pytest.raises(Exception, match="another process listens there"):
                two.console(port=port)
            assert _is_console(two.console())


def test_a_process_that_only_works_for_an_app_has_no_console(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "own", workers=0) as app:
        app.embedded = None
        with pytest.raises(InvalidState, match="only works for one"):
            app.console()
