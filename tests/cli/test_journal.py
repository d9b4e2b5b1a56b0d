"""The files of a node, read while it runs and after."""

import json

from tests.cluster.ordered_node import OrderedNode

from .shell import Shell

RECORDS = 3  # of a submission: its command, the event, and the answer to its request id


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
    later = shell.run("journal", "cat", "data", "--from", "3", "--json").out.splitlines()
    assert [json.loads(line)["position"] for line in later] == [3, 4, 5]
    about = shell.run("journal", "cat", "data", "--key", key).out.splitlines()
    assert len(about) == 1 and "JOB CREATED" in about[0]
    assert shell.run("journal", "cat", "data", "--partition", "2").code == 3


def test_cat_follows_what_comes(shell: Shell) -> None:
    shell.start_node("--partitions", "2")
    shell.submit("add")
    following = shell.begin("journal", "cat", "data", "--follow", "--limit", str(2 * RECORDS))
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
    assert sorted(item["next"] for item in bounds) == [0, RECORDS]
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


def test_cat_reads_a_node_elsewhere_as_it_reads_a_folder(shell: Shell) -> None:
    shell.serve_node(partitions=3)
    for number in range(4):
        shell.submit("add", f'{{"a": {number}, "b": 2}}', "--key", f"k{number}")  # on all three
    near, far = (shell.run("journal", "cat", where, "--json") for where in ("data", shell.url))
    assert near.out == far.out
    assert len(far.out.splitlines()) == 4 * RECORDS
    one = shell.run("journal", "cat", shell.url, "--partition", "2", "--limit", "1", "--json")
    assert one.json["partition"] == 2
    assert shell.run("journal", "cat", shell.url, "--partition", "4").code == 3


def test_a_node_of_its_own_has_no_order(shell: Shell) -> None:
    shell.serve_node()
    for where in ("data", shell.url):
        refused = shell.run("journal", "cat", where, "--ordered")
        assert refused.code == 5
        assert "a single node" in refused.err.lower()


def test_the_folder_of_a_member_is_read_through_a_member(shell: Shell) -> None:
    shell.serve_node()
    (shell.folder / "data" / "replica.json").write_text("{}")
    refused = shell.run("journal", "cat", "data")
    assert refused.code == 5
    assert "the URL of any member" in refused.err


def test_ordered_records_have_their_sequence_ids(shell: Shell) -> None:
    shell.serve_node(partitions=2)
    ordered = OrderedNode(shell.served.node)
    shell.served.portal.call(ordered.begin())
    keys: list[str] = []
    for number in range(6):
        keys.append(shell.submit("add", f'{{"a": {number}, "b": 2}}'))
        if number % 2:
            shell.served.portal.call(ordered.cut())
    shell.submit("add", "{}")  # in no cut yet
    read = shell.run("journal", "cat", shell.url, "--ordered", "--json")
    records = [json.loads(line) for line in read.out.splitlines()]
    assert [record["sequenceId"] for record in records] == list(range(6 * RECORDS))
    created = [record["key"] for record in records if record["intent"] == "CREATED"]
    assert [set(created[at : at + 2]) for at in (0, 2, 4)] == [
        set(keys[at : at + 2]) for at in (0, 2, 4)
    ]
    later = shell.run("journal", "cat", shell.url, "--ordered", "--from", "3", "--limit", "1")
    assert later.out.split()[0] == str(4 * RECORDS)
    one = shell.run("journal", "cat", shell.url, "--ordered", "--partition", "1", "--json")
    ids = {json.loads(line)["sequenceId"] for line in one.out.splitlines()}
    assert ids == {record["sequenceId"] for record in records if record["partition"] == 1}
