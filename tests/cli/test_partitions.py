"""A partition of a stopped node goes into a file and comes back."""

import asyncio
import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from holdfast.journal.local import LocalJournal

from .shell import Shell

PAYLOAD = '{"a": 1, "b": 2}'


@pytest.fixture
def keys(shell: Shell) -> list[str]:
    """Tasks of a node that is stopped."""
    node = shell.start_node("--partitions", "2")
    made = [shell.submit("add", PAYLOAD, "--key", f"k{each}") for each in range(6)]  # in both
    node.end()
    return made


def test_a_partition_goes_into_a_file_and_comes_back(shell: Shell, keys: list[str]) -> None:
    data = shell.folder / "data"
    for partition in (1, 2):
        done = shell.run("partitions", "export", "data", str(partition), f"out/{partition}.export")
        assert done.code == 0, done.err
        assert f"exported partition {partition}: " in done.out and "rows" in done.out
    shutil.rmtree(data / "state")
    for partition in (1, 2):
        name = f"out/{partition}.export"
        moved = shell.run("partitions", "import", "data", name, "--json").json
        assert moved["partition"] == partition and moved["blob"] == name
        assert moved["position"] > 0 and moved["offset"] > 0 and moved["rows"] > 0
        assert moved["sizeBytes"] == (shell.folder / name).stat().st_size
    bounds = shell.run("journal", "bounds", "data", "--json").json["items"]
    node = shell.start_node()
    assert node.started["replayedEvents"] == 0, bounds
    assert {shell.run("tasks", "show", key, "--json").json["state"] for key in keys} == {"WAITING"}


def test_a_node_that_runs_is_left_alone(shell: Shell) -> None:
    shell.start_node("--partitions", "1")
    shell.submit("add")
    done = shell.run("partitions", "export", "data", "1", "one.export")
    assert done.code == 4, done.err
    assert not (shell.folder / "one.export").exists()


def test_a_node_gets_another_number_of_processes_and_back(shell: Shell, keys: list[str]) -> None:
    bounds = shell.run("journal", "bounds", "data", "--json").json["items"]
    done = shell.run("partitions", "rebalance", "data", "--processes", "2")
    assert done.code == 0, done.err
    assert done.out.startswith("2 processes instead of 1: 1 of 2 partitions moved, ")
    assert shell.run("journal", "bounds", "data", "--json").json["items"] == bounds
    node = shell.start_node()
    assert node.started["processes"] == 2
    running = shell.run("partitions", "rebalance", "data", "--processes", "1")
    assert running.code == 4 and "in use by" in running.err
    _until_up(shell)
    assert {shell.run("tasks", "show", key, "--json").json["state"] for key in keys} == {"WAITING"}
    node.end()
    back = shell.run("partitions", "rebalance", "data", "--processes", "1", "--json").json
    assert (back["processes"], back["processesBefore"], back["moved"]) == (1, 2, [2])
    same = shell.run("partitions", "rebalance", "data", "--processes", "1")
    assert (same.code, same.out) == (0, "nothing to do: 1 process in data already\n")
    many = shell.run("partitions", "rebalance", "data", "--processes", "3")
    assert many.code == 2 and "at least one partition for each of 3 processes" in many.err
    nowhere = shell.run("partitions", "rebalance", "nowhere", "--processes", "2")
    assert nowhere.code == 3 and "data folder of a node in nowhere" in nowhere.err
    shell.start_node()
    assert {shell.run("tasks", "show", key, "--json").json["state"] for key in keys} == {"WAITING"}


def _until_up(shell: Shell) -> None:
    """A member answers as soon as it is there itself; the other may still be starting."""
    deadline = time.monotonic() + 60
    status = ""
    while status != "UP":
        assert time.monotonic() < deadline, f"the node is {status}"
        time.sleep(0.02)
        with suppress(OSError), urlopen(f"{shell.url}/v2/health", timeout=10) as answer:
            status = json.load(answer)["status"]


def test_an_export_is_refused_where_it_does_not_belong(shell: Shell, keys: list[str]) -> None:
    del keys
    for words, text in (
        (("export", "nowhere", "1", "one.export"), "data folder of a node in nowhere"),
        (("export", "data", "3", "one.export"), "partition from 1 to 2"),
        (("import", "data", "no/one.export"), "no blob one.export in"),
        (("import", "nowhere", "one.export"), "no blob one.export in"),
    ):
        done = shell.run("partitions", *words)
        assert done.code == 3 and text in done.err, done.err
    assert {path.name for path in shell.folder.iterdir()} == {"shop.py", "data"}

    data, file = shell.folder / "data", shell.folder / "one.export"
    assert shell.run("partitions", "export", "data", "1", "one.export").code == 0
    there = shell.run("partitions", "import", "data", "one.export")
    assert there.code == 5 and "no state of partition 1" in there.err

    shutil.rmtree(data / "state")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    damaged = shell.run("partitions", "import", "data", "one.export")
    assert damaged.code == 6 and "ends in the middle" in damaged.err
    file.write_bytes(whole)

    asyncio.run(make_empty_log(shell.folder / "other" / "journal"))
    log = shell.run("partitions", "import", "other", "one.export")
    assert log.code == 5 and "bring the journal of the node" in log.err

    assert shell.run("partitions", "import", "data", "one.export").code == 0


async def make_empty_log(folder: Path) -> None:
    journal = LocalJournal.open(folder)
    journal.create_topic("records", 2)
    await journal.close()
