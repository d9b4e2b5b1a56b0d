"""Settings: where they come from, and what is said of those that are wrong."""

import re
from pathlib import Path

import pytest

from holdfast.config import LOG_LEVELS, Config, Source, load_config, load_settings
from holdfast.config.environment import is_known
from holdfast.errors import InvalidArgument
from holdfast.logs import LEVELS

ROOT = Path(__file__).parents[2]


def test_each_setting_knows_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text("port = 9000\nhost = 'localhost'\npartitions = 2\n")
    found = load_settings(
        tmp_path, {"HOLDFAST_PARTITIONS": "8", "HOLDFAST_PORT": "9001"}, port=9002
    )
    assert (found.config.host, found.sources["host"]) == ("localhost", Source.FILE)
    assert (found.config.partitions, found.sources["partitions"]) == (8, Source.ENVIRONMENT)
    assert (found.config.port, found.sources["port"]) == (9002, Source.OPTION)
    assert (found.config.log_json, found.sources["log_json"]) == (False, Source.DEFAULT)
    assert found.path == tmp_path / "holdfast.toml"
    assert load_settings(tmp_path / "elsewhere", {}).path is None


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = 'host = 3\n\n# a comment\nprot = 1\nport = "high"\nlog_level = "loud"\n[deep]\na = 1\n'
    (tmp_path / "holdfast.toml").write_text(text)
    with pytest.raises(InvalidArgument) as raised:
        load_config(tmp_path, {"HOLDFAST_PARTITIONS": "0", "HOLDFAST_AUTHORISATION": "1"})
    file = tmp_path / "holdfast.toml"
    assert raised.value.message.splitlines() == [
        "The configuration has 7 problems:",
        f"  host ({file}, line 1): expected a text, but found 3",
        f"  prot ({file}, line 4) is not a setting; did you mean port?",
        f"  port ({file}, line 5): expected a whole number, but found 'high'",
        f"  log_level ({file}, line 6): expected a log level among"
        f" {', '.join(LOG_LEVELS)}, but found 'loud'",
        f"  deep ({file}, line 7) is not a setting",
        "  HOLDFAST_PARTITIONS: expected 1 to 4095, but found 0",
        "  HOLDFAST_AUTHORISATION in the environment is not a setting;"
        " did you mean HOLDFAST_AUTHORIZATION?",
    ]


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("port = 70000", "expected 0 to 65535, but found 70000"),
        ("authorization = 'perhaps'", "expected true or false, but found 'perhaps'"),
        ("segment_bytes = 1", "expected at least 65536, but found 1"),
        ("keep_result_ms = -5", "but found -5"),
        ("commands_in_flight_max = 0", "expected at least 1, but found 0"),
        ("port = ", "is not valid TOML"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(tmp_path: Path, setting: str, found: str) -> None:
    (tmp_path / "holdfast.toml").write_text(setting)
    with pytest.raises(InvalidArgument, match=re.escape(found)):
        load_config(tmp_path, {}, port=0)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="cannot be read: it is not UTF-8 text"):
        load_config(tmp_path, {})
    (tmp_path / "holdfast.toml").unlink()
    (tmp_path / "holdfast.toml").mkdir()
    with pytest.raises(InvalidArgument, match="cannot be read: Is a directory"):
        load_config(tmp_path, {})


def test_what_kubernetes_puts_into_the_environment_is_named(tmp_path: Path) -> None:
    links = {"HOLDFAST_PORT": "tcp://10.0.0.1:8080", "HOLDFAST_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(InvalidArgument) as raised:
        load_config(tmp_path, links)
    assert raised.value.message.count("enableServiceLinks: false") == 2


def test_a_config_made_in_python_is_checked_too() -> None:
    with pytest.raises(InvalidArgument, match="port: expected 0 to 65535"):
        Config(port=70_000)
    assert tuple(LEVELS) == LOG_LEVELS


def test_every_name_in_the_environment_that_the_tree_reads_is_known() -> None:
    """A new one belongs into config/environment.py, or a node refuses to start beside it."""
    names: dict[str, str] = {}
    for folder in ("src", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name not in ("test_settings.py", "test_bad_inputs.py"):  # wrong on purpose
                found = re.findall(r"(?<!_)HOLDFAST_[A-Z0-9_]*[A-Z0-9]\b", path.read_text())
                names |= dict.fromkeys(found, str(path))
    settings = Config.__struct_fields__
    assert {name: path for name, path in names.items() if not is_known(name, settings)} == {}
    assert len(names) > 20
