"""A node as a process: it starts, refuses, recovers and stops."""

import json
import resource
import signal
from pathlib import Path

from .shell import Shell


def test_a_node_says_where_it_is_and_stops_cleanly_on_either_signal(shell: Shell) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        node = (
            shell.start_node("--partitions", "3")
            if number == signal.SIGTERM
            else (shell.start_node())
        )
        assert node.started["partitions"] == 3
        assert node.started["url"].startswith("http://127.0.0.1:")
        assert node.started["folder"] == "data"
        assert shell.run("tasks", "list").code == 0
        end = node.end(number)
        assert (end.code, end.err) == (0, "")


def test_a_stop_does_not_wait_for_long_polls(shell: Shell) -> None:
    node = shell.start_node()
    worker = shell.begin("worker", "shop:app")  # idle: it waits in a long poll of 20 s
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(timeout=10) == 0
    assert worker.end().code == 0


def test_a_second_node_on_the_folder_is_refused_and_told_who_holds_it(shell: Shell) -> None:
    node = shell.start_node()
    second = shell.run_process("start", "data", "--port", "0")
    assert second.code == 4
    assert str(node.process.pid) in second.err
    assert "Traceback" not in second.err


def test_a_port_that_is_taken_is_refused(shell: Shell) -> None:
    node = shell.start_node()
    port = node.started["url"].rpartition(":")[2]
    other = shell.run_process("start", "other", "--port", port)
    assert other.code == 4
    assert f":{port}: another process listens there" in other.err


def test_only_this_machine_is_let_in_unless_it_is_spelled_out(shell: Shell) -> None:
    refused = shell.run_process("start", "data", "--host", "0.0.0.0")
    assert refused.code == 2
    assert "--allow-remote-without-authorization" in refused.err
    assert not (shell.folder / "data").exists()
    node = shell.start_node("--host", "0.0.0.0", "--allow-remote-without-authorization")
    assert node.end().code == 0


def test_other_partitions_than_the_folder_has_are_refused(shell: Shell) -> None:
    shell.start_node("--partitions", "2").end()
    again = shell.run_process("start", "data", "--partitions", "3", "--port", "0")
    assert again.code == 2
    assert "the log has 2" in again.err


def test_a_killed_node_has_everything_that_was_acknowledged(shell: Shell) -> None:
    node = shell.start_node()
    keys = {shell.submit("add", json.dumps({"a": n, "b": n})) for n in range(5)}
    node.end(signal.SIGKILL)

    again = shell.start_node()
    assert again.started["replayedEvents"] >= 5
    listed = shell.run("tasks", "list", "--json").json["items"]
    assert {task["taskKey"] for task in listed} == keys


def test_a_node_with_no_free_file_descriptor_ends_in_order(shell: Shell) -> None:
    node = shell.start_node()
    key = shell.submit("add")
    used = {int(path.name) for path in Path(f"/proc/{node.process.pid}/fd").iterdir()}
    free = next(number for number in range(4_096) if number not in used)
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (free, 4_096))
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(30) == 0

    shell.start_node()
    assert shell.run("tasks", "list", "--json").json["items"][0]["taskKey"] == key


def test_a_data_folder_is_for_its_owner_and_one_that_is_open_is_told(shell: Shell) -> None:
    shell.start_node().end()
    stored = [shell.folder / "data", *(shell.folder / "data").rglob("*")]
    assert [str(path) for path in stored if path.stat().st_mode & 0o077] == []
    (shell.folder / "data").chmod(0o755)
    found = {each["name"]: each for each in shell.run("doctor", "data", "--json").json["items"]}
    assert found["rights"]["status"] == "warn" and "chmod" in found["rights"]["advice"]


def test_a_damaged_journal_is_refused_and_names_the_place(shell: Shell) -> None:
    node = shell.start_node("--partitions", "1")
    for _ in range(3):
        shell.submit("add")
    node.end()
    _flip_a_byte_in_the_first_frame(shell.folder / "data")

    refused = shell.run_process("start", "data", "--port", "0")
    assert refused.code == 6
    assert ".segment" in refused.err
    assert shell.run("journal", "verify", "data").code == 6
    doctor = shell.run("doctor", "data", "--json")
    assert doctor.code == 6
    status = {check["name"]: check["status"] for check in doctor.json["items"]}
    assert status["journal"] == "fail"


def _flip_a_byte_in_the_first_frame(data: Path) -> None:
    segment = min((data / "journal" / "records").glob("*.segment"))
    content = bytearray(segment.read_bytes())
    content[100] ^= 0xFF
    segment.write_bytes(content)
