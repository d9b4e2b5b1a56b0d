"""Wrong input over the real command: one clear message, the right exit code, no traceback."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.edge import file_error
from holdfast.errors import Code

from .shell import Shell

# Words of libraries, and of Python itself, that no user should have to know.
_LEAKS = re.compile(
    r"Traceback|msgspec|aiohttp|litestar|pydantic|click|typer|rocksdict|RocksDB|lxml|\bRaw\b"
    r"|Errno|_ssl\.c|ssl:default|at `\$|Expected `|Input should be|Value error|Connect call",
    re.IGNORECASE,
)

_BAD: list[tuple[int, str, str]] = [
    # what is typed; the exit code; and what the message says
    (2, "start data --log-level loud", "expected a log level among debug, info"),
    (2, "start file --port 0", "expected a folder at file, but it is a file"),
    (2, "start file/below --port 0", "expected a folder at file, but it is a file"),
    (2, "start data --port 99999", "expected at most 65535 for --port, but found '99999'"),
    (2, "start data --port high", "expected a whole number for --port, but found 'high'"),
    (2, "start data --partitions 0", "expected 1 to 4095, but found 0"),
    (2, "start data --tls-certificate file", "a certificate (PEM) in file, but the file has none"),
    (2, "start data --tls-certificate gone", "cannot read the TLS certificate gone: no such file"),
    (2, "start data --snapshot-store ftp://x/y", "a blob store as a folder"),
    (2, "start other --cluster nonsense", "nonsense"),
    (2, "start data --journal nonsense", "expected a URL of the form kafka://"),
    (4, "start data --allow-remote-without-authorization --host no.invalid", "name of the host"),
    (2, "start bad-toml", "port (bad-toml/holdfast.toml, line 2): expected a whole number"),
    (2, "start no-toml", "cannot be read: it is not UTF-8 text"),
    (2, "start typo-toml", "prot (typo-toml/holdfast.toml, line 1) is not a setting; did you mean"),
    (2, "tasks list --url 127.0.0.1:8080", "expected a URL such as http://127.0.0.1:8080, but"),
    (2, "tasks list --url http://127.0.0.1:99999", "the port in '127.0.0.1:99999' is not a number"),
    (2, "tasks list --url http://127.0.0.1:high", "the port in '127.0.0.1:high' is not a number"),
    (2, "tasks list --url http://", "but found 'http://'"),
    (2, "tasks list --url http://x?y=1", "found something behind its path: 'y=1'"),
    (2, "tasks list --url http://127.0.0.1:1,nonsense", "but found 'nonsense', in"),
    (4, "tasks list --url http://127.0.0.1:1", "connection refused; is the node started"),
    (4, "tasks list --url http://ünï.invalid:1", "the host name is unknown"),
    (4, "journal cat http://127.0.0.1:1", "connection refused"),
    (2, "tasks list --state NOPE", "expected one of waiting, scheduled, active"),
    (2, "tasks list --limit 0", "expected at least 1 for --limit, but found '0'"),
    (2, "tasks show abc", "expected the key of a task, but found 'abc'"),
    (2, "tasks show a/b", "expected the key of a task, but found 'a/b'"),
    (2, "tasks show ünï", "expected the key of a task"),
    (2, "tasks show", "missing argument 'KEY'. See holdfast tasks show --help"),
    (2, "tasks submit a {", "it ends too early"),
    (2, "tasks submit a {} --delay soon", "expected a span such as 250ms"),
    (2, "tasks submit a {} --timeout 5s", "--timeout needs --wait"),
    (2, "tasks result 5 --timeout 5s", "--timeout needs --wait"),
    (2, "start-process a --timeout 5s", "--timeout needs --wait"),
    (2, "start-process a --variables [1]", "is a list: '[1]'"),
    (2, "start-process a --variables @gone.json", "in gone.json cannot be read: no such file"),
    (2, "fly", "no such command 'fly'. See holdfast --help"),
    (2, "start --fly", "no such option: --fly. See holdfast start --help"),
    (2, "journal cat file", "expected a folder at file, but it is a file"),
    (3, "journal cat gone", "there is no journal in gone"),
    (2, "journal verify file", "expected a folder at file"),
    (2, "config show file", "expected a folder at file, but it is a file"),
    (2, "distributions show a/b", "expected the key of a distribution, but found 'a/b'"),
    (2, "transactions show abc", "expected the key of a transaction"),
    (2, "batch show a/b", "expected the key of a batch operation"),
    (2, "cluster drain a/b", "to be the name of a member: 1 to 64 letters, digits"),
    (2, "cluster remove ../x", "but found '../x'"),
    (2, "cluster move 0 m1", "expected at least 1 for partition, but found '0'"),
    (2, "doctor file", "expected a folder at file"),
    (2, "worker broken:app", "SyntaxError: invalid syntax"),
    (2, "worker raising:app", "ValueError: boom ("),
    (2, "worker raising:app", "raising.py, line 2)"),
    (3, "worker gone:app", "there is no module gone in "),
    (3, "worker shop:gone", "expected 'gone' in "),
    (2, "worker shop:order", "to be a Holdfast"),
    (2, "worker shop:app --mode fibres", "expected one of threads, processes for --mode"),
    (3, "deploy gone.bpmn", "there is no BPMN file at gone.bpmn"),
    (2, "deploy folder", "expected a BPMN file at folder, but it is a folder"),
    (2, "deploy file", "file:1: Expected a BPMN file, but line 1 is not XML"),
    (2, "deploy broken:x", "SyntaxError"),
    (2, "deploy bytes.bpmn", "the BPMN file bytes.bpmn is not UTF-8 text"),
    (2, "deploy shop:app", "shop.py to be a Process, but it is a Holdfast"),
    (2, "task", "Did you mean 'tasks'? See holdfast --help"),
]


@pytest.fixture
def folder(shell: Shell) -> Shell:
    at = shell.folder
    (at / "file").write_text("hello\n")
    (at / "folder").mkdir()
    (at / "bytes.bpmn").write_bytes(b"\xff\xfe")
    (at / "broken.py").write_text("def f(:\n")
    (at / "raising.py").write_text("\nraise ValueError('boom')\n")
    for name, content in (
        ("bad-toml", b'host = "localhost"\nport = "high"\n'),
        ("no-toml", b"\xff\xfe"),
        ("typo-toml", b"prot = 1\n"),
    ):
        (at / name).mkdir()
        (at / name / "holdfast.toml").write_bytes(content)
    return shell


def test_wrong_input_is_one_clear_message_with_the_right_exit_code(folder: Shell) -> None:
    wrong: list[str] = []
    for code, typed, said in _BAD:
        done = folder.run(*typed.split())
        if done.code != code or said not in done.err or _LEAKS.search(done.err + done.out):
            wrong.append(f"{typed} → {done.code}: {done.err or done.out}")
        elif len(done.err.splitlines()) != 1:
            wrong.append(f"{typed}: more than a line: {done.err}")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HOLDFAST_PROT", "1", "did you mean HOLDFAST_PORT?"),
        ("HOLDFAST_PORT", "tcp://10.0.0.1:80", "enableServiceLinks: false"),
        ("HOLDFAST_LOG_LEVEL", "loud", "expected a log level among debug"),
    ],
)
def test_a_wrong_environment_is_refused(
    folder: Shell, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    done = folder.run("start", "data")
    assert (done.code, _LEAKS.search(done.err)) == (2, None)
    assert said in done.err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HOLDFAST_CA", "file", "(PEM) in file, but it has none"),
        ("HOLDFAST_CA", "gone", "(PEM) in gone, but no such file"),
        ("HOLDFAST_TOKEN", "a\nb", "expected a token of plain characters"),
    ],
)
def test_a_client_with_wrong_credentials_is_told(
    folder: Shell, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    done = folder.run("tasks", "list")
    assert (done.code, _LEAKS.search(done.err)) == (2, None)
    assert said in done.err


@pytest.mark.parametrize("name", ["HOLDFAST_ULR", "HOLDFAST_TOKN"])
def test_a_misspelt_variable_does_not_send_a_command_to_another_node(
    folder: Shell, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    done = folder.run("tasks", "list")
    meant = {"HOLDFAST_ULR": "HOLDFAST_URL", "HOLDFAST_TOKN": "HOLDFAST_TOKEN"}[name]
    assert (done.code, done.err) == (
        2, f"error: {name} in the environment is not a setting; did you mean {meant}?\n"
    )  # fmt: skip


def test_variables_that_kubernetes_sets_for_a_service_do_not_stop_a_client(
    folder: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SERVICE_HOST", "10.0.0.1")
    assert folder.run("tasks", "list", "--url", "http://127.0.0.1:1").code == 4


def test_the_package_can_be_run_as_a_module(folder: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("holdfast ")


def test_with_json_a_wrong_command_line_is_a_problem_in_json(folder: Shell) -> None:
    import json

    problem = json.loads(folder.run("tasks", "list", "--limit", "0", "--json").err)
    assert problem["code"] == Code.INVALID_ARGUMENT
    assert problem["fields"] == {"option": "--limit"}


def test_what_the_operating_system_refuses_has_a_code_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "there")
    for error, code, said in (
        (PermissionError(13, "Permission denied", path), Code.FORBIDDEN, "chmod"),
        (FileNotFoundError(2, "No such file", path), Code.NOT_FOUND, "There is no file or folder"),
        (IsADirectoryError(21, "Is a directory", path), Code.INVALID_ARGUMENT, "it is a folder"),
        (OSError(28, "No space left", path), Code.RESOURCE_EXHAUSTED, "No space is left"),
        (OSError(24, "Too many open files"), Code.RESOURCE_EXHAUSTED, "ulimit -n"),
        (OSError(5, "Input/output error", path), Code.UNAVAILABLE, "input/output error"),
    ):
        told = file_error(error)
        assert (told.code, said in told.message) == (code, True), told.message


_TWO_PROBLEMS = """<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
 <process id="p" isExecutable="true">
  <startEvent id="s"/>
  <complexGateway id="cg"/>
  <adHocSubProcess id="ah"/>
 </process>
</definitions>
"""
_DSL = """from holdfast import Process, path, when

bad = (
    Process("bad")
    .task("charge", retries=-1)
    .choose(when("total >", path().task("review")))
)
"""


def test_deploy_names_every_problem_of_every_process_with_its_line(folder: Shell) -> None:
    (folder.folder / "two.bpmn").write_text(_TWO_PROBLEMS)
    (folder.folder / "dsl.py").write_text(_DSL)
    done = folder.run("deploy", "two.bpmn", "dsl:bad", "file")
    assert done.code == 2
    first, *lines = done.err.splitlines()
    assert first == "error: nothing was deployed, because of 5 problems:"
    assert [line.split(": ")[0].strip() for line in lines] == [
        "two.bpmn:5", "two.bpmn:6", "dsl.py:5", "dsl.py:6", "file:1",
    ]  # fmt: skip
    as_json = folder.run("deploy", "two.bpmn", "--json")
    assert '"line":5' in as_json.err and '"line":6' in as_json.err
