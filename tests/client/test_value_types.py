"""Values of all types come back by their annotations, wherever the work is done; or encrypted."""

import dataclasses
import importlib
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic import BaseModel
from tests.cli.shell import Shell
from waiting import WAIT

from holdfast import (
    BusinessError,
    Holdfast,
    InvalidArgument,
    Process,
    ValueCodec,
    error,
    otherwise,
    path,
    when,
)
from holdfast.client.worker import WorkerMode
from holdfast.testing import app as kit_app

SECRET = "horseradish"


@pytest.fixture(params=["embedded", "over HTTP", "in child processes", "encrypted, in children"])
def tasks(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The module of tasks, opened in one of these ways, with a worker."""
    shell = Shell(tmp_path)
    if request.param == "over HTTP":
        shell.serve_node(partitions=1)
        monkeypatch.setenv("VALUE_TASKS_URL", shell.url)
    if request.param.startswith("encrypted"):
        monkeypatch.setenv("VALUE_TASKS_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("VALUE_TASKS_FOLDER", str(tmp_path / "work"))
    sys.modules.pop("value_tasks", None)
    module = importlib.import_module("value_tasks")
    mode = WorkerMode.PROCESSES if "child" in request.param else WorkerMode.THREADS
    worker = module.app.worker(concurrency=1, mode=mode).start()
    try:
        yield module
    finally:
        worker.stop()
        module.app.close()
        shell.close()


def order() -> Process:
    return (
        Process("order")
        .choose(
            when("open_limit > 5", path().task("price").task("ship")),
            otherwise(path().task("nowhere")),
        )
    )  # fmt: skip


def test_values_of_all_types_come_back_as_they_were_sent(tasks: Any) -> None:
    sent = tasks.EVERYTHING
    fields = {each.name: getattr(sent, each.name) for each in dataclasses.fields(sent)}
    handle = tasks.one_by_one.submit(**fields)
    assert_same(handle.result(timeout=WAIT), sent)
    assert_same(tasks.one_by_one.handle(handle.key).result(timeout=WAIT), sent)
    assert_same(tasks.nested.submit(sent, [sent]).result(timeout=WAIT)["it"], sent)
    assert_same(tasks.awaited.submit(sent.basket).result(timeout=WAIT), sent.basket)

    later = tasks.one_by_one.bind(**fields).submit(delay=3_600).view()
    ended = handle.view()
    assert_plain(later.payload)
    assert_plain(ended.result)
    assert later.payload["who"] == str(sent.who) and ended.result["price"] == sent.price

    tasks.app.deploy(order())
    variables = {"basket": sent.basket, "secret": SECRET, "open_limit": 6}
    instance = tasks.app.start("order", variables)
    result = instance.result(timeout=WAIT)
    assert_plain(result)
    assert result["shipped"] == f"FOR {SECRET}".upper()
    assert (result["double"], result["exact"]) == ("1", sent.basket.lines[0].price)

    waiting = tasks.app.start("order", variables | {"open_limit": 1})
    waiting.set_variables({"share": Fraction(1, 7)})
    assert_plain(waiting.view().variables)
    assert waiting.view().variables["secret"] == SECRET
    assert waiting.view().variables["share"] == "1/7"
    [listed] = tasks.app.instances("order")
    assert listed.variables == {}


def assert_same(found: Any, sent: Any) -> None:
    """Equal, and of the same types all the way down."""
    assert found == sent
    assert repr(found) == repr(sent) or sorted(repr(found)) == sorted(repr(sent)), (
        "sets in any order"
    )


def assert_plain(value: Any) -> None:
    """Only what JSON has, and Decimals: nothing of a library."""
    todo = [value]
    for each in todo:
        assert type(each) in (dict, list, str, int, float, bool, Decimal, type(None)), each
        todo += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


# --- encrypted --------------------------------------------------------------------------------


class Boxed(ValueCodec):
    """Encrypts everything but what is named `open_...`."""

    def __init__(self) -> None:
        self._box = Fernet(Fernet.generate_key())

    def seal(self, name: str, data: bytes) -> bytes | None:
        return None if name.startswith("open_") else self._box.encrypt(data)

    def unseal(self, data: bytes) -> bytes:
        return self._box.decrypt(data)


def run_everything(folder: Path, codec: ValueCodec | None) -> None:
    """A task, a process, a message, a changed variable and an error, all with the secret."""
    process = (
        Process("order")
        .task("refuse", on=[error("REFUSED", path().task("explain"))])
        .wait("told", message="told", key="open_number")
        .task("finish")
    )
    with Holdfast.open(folder, workers=2, codec=codec) as app:

        @app.task
        def shout(text: str) -> str:
            return f"{text} aloud"

        @app.task
        def refuse(text: str) -> None:
            raise BusinessError("REFUSED", "by request", reason=f"because of {text}")

        @app.task
        def explain(reason: str) -> dict[str, str]:
            return {"explained": f"{reason}, so there"}

        @app.task
        def finish(text: str, reason: str, added: str, heard: str) -> dict[str, str]:
            with app.transaction() as t:
                t.submit(shout.bind(text), key="shouted")
                t.complete(result={"all": [text, reason, added, heard]})
            return {}

        app.deploy(process)
        assert shout.submit(SECRET).result(timeout=WAIT) == f"{SECRET} aloud"
        instance = app.start("order", {"text": SECRET, "open_number": 7})
        instance.set_variables({"added": f"added {SECRET}"})
        app.publish("told", 7, {"heard": f"heard {SECRET}"}, ttl=60)
        result = instance.result(timeout=WAIT)
        reason = f"because of {SECRET}"
        assert result["all"] == [SECRET, reason, f"added {SECRET}", f"heard {SECRET}"]
        assert result["explained"] == f"{reason}, so there"
        again = shout.bind(SECRET).submit(key="shouted")
        assert not again.created and again.result(timeout=WAIT) == f"{SECRET} aloud"


def files_with(folder: Path, text: str) -> list[Path]:
    return [
        each for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()
    ]


def test_nothing_that_was_encrypted_can_be_read_in_the_folder(tmp_path: Path) -> None:
    run_everything(tmp_path / "readable", None)
    assert files_with(tmp_path / "readable", SECRET), "else the search finds nothing at all"
    run_everything(tmp_path / "encrypted", Boxed())
    assert files_with(tmp_path / "encrypted", SECRET) == []
    assert files_with(tmp_path / "encrypted", "$sealed")


def test_a_program_without_the_codec_sees_names_and_sealed_values(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path, workers=0, codec=Boxed()) as app:
        key = app.task(name="note")(_note).submit(text=SECRET).key
        assert app.handle(key).view().payload == {"text": SECRET}
    with Holdfast.open(tmp_path, workers=0) as app:
        payload = app.handle(key).view().payload
        assert list(payload) == ["text"] and list(payload["text"]) == ["$sealed"]


def _note(text: str) -> None: ...


# --- what has no form -------------------------------------------------------------------------


def test_a_value_of_another_type_is_refused_by_its_place_without_a_codec_for_it() -> None:
    with kit_app() as work:

        @work.task(retries=0)
        def take(value: Any) -> Any:
            return Fraction(1, 2)

        said = r"value\.a\[1\]: expected a value that JSON carries, but found Fraction; a codec can"
        with pytest.raises(InvalidArgument, match=said):
            take.submit({"a": [1, Fraction(1, 2)]})
        with pytest.raises(InvalidArgument, match=r"variables\.part: .* found Fraction"):
            work.start("order", {"part": Fraction(1, 2)})
        take.submit(1)
        work.run_all()
        [incident] = work.incidents()
        assert (
            "the result: expected a value that JSON carries, but found Fraction" in incident.error
        )


def test_a_number_that_json_cannot_carry_is_found_in_a_model() -> None:
    class Rate(BaseModel):
        value: float

    with kit_app() as work, pytest.raises(InvalidArgument, match=r"variables\.rate\.value: NaN"):
        work.start("order", {"rate": Rate(value=float("nan"))})


def test_pydantic_is_not_imported_by_holdfast() -> None:
    program = (
        "import sys; from holdfast.testing import app; from dataclasses import dataclass\n"
        "with app() as work:\n"
        "    double = work.task(name='double')(lambda n: 2 * n)\n"
        "    handle = double.submit(1); work.run_all(); assert handle.result() == 2\n"
        "assert not {'pydantic', 'attrs'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
