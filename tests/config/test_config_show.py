"""`holdfast config show`: every setting, where it comes from, and no secret."""

import json
from pathlib import Path

import pytest

from holdfast.cli.main import run
from holdfast.config import Config
from holdfast.config.showing import hidden


def test_every_setting_is_shown_with_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text('port = 9000\ncluster = "etcd://ann:hunter2@h1:2379"\n')
    monkeypatch.setenv("HOLDFAST_LOG_JSON", "true")
    assert run(["config", "show", str(tmp_path), "--json"]) == 0
    out = capsys.readouterr().out
    found = {each["name"]: each for each in json.loads(out)["items"]}
    assert list(found) == list(Config.__struct_fields__)
    assert (found["port"]["value"], found["port"]["source"]) == (9000, "file")
    assert found["log_json"]["value"] is True
    assert found["log_json"]["place"] == "HOLDFAST_LOG_JSON"
    assert found["host"]["source"] == "default"
    assert "hunter2" not in out

    assert run(["config", "show", str(tmp_path), "--changed"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["SETTING", "VALUE", "SOURCE"]
    assert [line.split() for line in lines] == [
        ["port", "9000", str(file)],
        ["cluster", "etcd://***@h1:2379", str(file)],
        ["log_json", "true", "HOLDFAST_LOG_JSON"],
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("s3://KEY:SEC/RET@bucket/prefix", "s3://***@bucket/prefix"),
        ("spark.ssl.keyPassword=abc, x=y", "spark.ssl.keyPassword=***, x=y"),
        ("fs.s3a.secret.key=abc,x=y", "fs.s3a.secret.key=***,x=y"),
        ("etcds://h1:2379,h2:2379", "etcds://h1:2379,h2:2379"),
        (8080, 8080),
    ],
)
def test_secrets_are_hidden(value: object, shown: object) -> None:
    assert hidden(value) == shown
