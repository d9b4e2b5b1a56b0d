"""The files of a node, read while it runs and after."""

import json

from .shell import Shell


def test_records_are_read_while_the_node_runs_and_after(shell: Shell) -> None:
    node = shell.start_node("--partitions", "2")
    key = shell.submit("add", '{"a": 1, "b": 2}', "--key", "sum")

    for _ in range(2):
        read = shell.run("journal", "cat", "data", "--json")
        records = [json.loads(line) for line in read.out.splitlines()]
        created = [record for record in records if record["intent"] == "CREATED"]
        assert [record["key"] for record in created] == [key]
        assert created[0]["kind"] == "EVENT"
        assert created[0]["valueType"] == "JOB"
        assert created[0]["value"]["payload"] == {"a": 1, "b": 2}
        assert created[0]["value"]["idempotency_key"] == "sum"
        node.end()


def test_cat_stops_at_a_limit_and_begins_at_a_position(shell: Shell) -> None:
    shell.start_node("--partitions", "1")
    key = shell.submit("add")
    shell.submit("nap")
    assert len(shell.run("journal", "cat", "data", "--limit", "2").out.splitlines()) == 2
    later = shell.run("journal", "cat", "data", "--from", "2", "--json").out.splitlines()
    assert [json.loads(line)["position"] for line in later] == [2, 3]
    about = shell.run("journal", "cat", "data", "--key", key).out.splitlines()
    assert len(about) == 1 and "JOB CREATED" in about[0]
    assert shell.run("journal", "cat", "data", "--partition", "2").code == 3


def test_cat_follows_what_comes(shell: Shell) -> None:
    shell.start_node("--partitions", "2")
    shell.submit("add")
    following = shell.begin("journal", "cat", "data", "--follow", "--limit", "4")
    assert following.started["position"] == 0
    key = shell.submit("nap")
    out, _ = following.process.communicate(timeout=20)
    assert key in {json.loads(line)["key"] for line in out.splitlines()}
    assert following.process.returncode == 0


def test_topics_bounds_and_verify_tell_what_is_there(shell: Shell) -> None:
    shell.start_node("--partitions", "2")
    shell.submit("add")
    (topic,) = shell.run("journal", "topics", "data", "--json").json["items"]
    assert (topic["topic"], topic["partitions"]) == ("records", 2)
    bounds = shell.run("journal", "bounds", "data", "--json").json["items"]
    assert sorted(item["next"] for item in bounds) == [0, 2]
    verified = shell.run("journal", "verify", "data")
    assert verified.code == 0
    assert "none" in verified.out


def test_a_folder_without_a_journal_is_not_found(shell: Shell) -> None:
    for verb in ("topics", "bounds", "cat", "verify"):
        assert shell.run("journal", verb, "nowhere").code == 3


def test_doctor_knows_a_running_node_from_a_stopped_one(shell: Shell) -> None:
    node = shell.start_node()
    shell.submit("add")
    running = shell.run("doctor", "data", "--json")
    assert running.code == 0
    found = {check["name"]: check["found"] for check in running.json["items"]}
    assert str(node.process.pid) in found["lock"]
    assert "live: as they were written" in found["state"]

    node.end()
    found = {check["name"]: check for check in shell.run("doctor", "data", "--json").json["items"]}
    assert found["lock"]["found"].startswith("free")
    assert "live: as they were written" in found["state"]["found"]
    assert found["rights"]["status"] == "ok"
    assert all(check["status"] == "ok" for check in found.values() if check["name"] != "disk space")
    assert shell.run("doctor").code == 0
