"""deploy/: what is in it is valid, and fits the program as it is."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.main import app
from holdfast.config import load_config

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = "1.33"
USER = 10001


def _documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))


def _stateful_set(name: str) -> dict[str, Any]:
    (found,) = (each for each in _documents(name) if each["kind"] == "StatefulSet")
    return found["spec"]


def _options_of(verb: str) -> set[str]:
    group: Any = typer.main.get_command(app)
    for word in verb.split():
        group = group.commands[word]
    return {option for parameter in group.params for option in parameter.opts}


@pytest.mark.parametrize("name", ["single.yaml", "cluster.yaml"])
def test_manifests_are_what_kubernetes_accepts(name: str) -> None:
    for document in _documents(name):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", ["single.yaml", "cluster.yaml"])
def test_a_pod_has_no_rights_probes_that_exist_and_settings_that_are_taken(
    name: str, tmp_path: Path
) -> None:
    pod = _stateful_set(name)["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["enableServiceLinks"] is False  # HOLDFAST_PORT would be an address
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == USER
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/v2/health", "port": "http"}
    assert "httpGet" not in container["livenessProbe"]  # 503 while a state is rebuilt

    verb, folder, *options = container["args"]
    mounts = [each["mountPath"] for each in container["volumeMounts"]]
    assert verb == "start" and Path(folder).parent == Path(mounts[0])
    assert {each for each in options if each.startswith("--")} <= _options_of("start")
    given = {
        each["name"]: each["value"].replace("$(POD_IP)", "10.0.0.7")
        for each in container["env"]
        if "value" in each
    }
    config = load_config(tmp_path, given)
    assert "holdfast.default.svc" in config.allowed_hosts


def test_a_cluster_loses_one_member_at_a_time_and_drains_it_first() -> None:
    documents = {each["kind"]: each for each in _documents("cluster.yaml")}
    spec = _stateful_set("cluster.yaml")
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 3
    assert documents["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert documents["Service"]["spec"]["publishNotReadyAddresses"]
    assert spec["serviceName"] == documents["Service"]["metadata"]["name"]
    (container,) = pod["containers"]
    command = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert "holdfast cluster drain" in command and "--timeout 2m" in command
    assert "--timeout" in _options_of("cluster drain")
    assert pod["terminationGracePeriodSeconds"] > 120
    assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


def test_the_image_runs_without_root_and_tells_its_health() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), DEPLOY / "Dockerfile"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    for line in (f"USER {USER}:{USER}", "VOLUME /data", "HEALTHCHECK ", 'ENTRYPOINT ["holdfast"]'):
        assert line in text
    assert "--authorization" in text  # it listens beyond the container


def test_the_health_check_of_the_image_says_whether_the_node_works() -> None:
    asked = [sys.executable, str(DEPLOY / "health.py")]
    down = subprocess.run(
        asked, env={"HOLDFAST_PORT": "1"}, capture_output=True, text=True, check=False
    )
    assert down.returncode == 1 and "refused" in down.stderr


def test_the_unit_is_what_systemd_accepts(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "holdfast.service").read_text()
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    _, verb, *arguments = settings["ExecStart"].split()
    assert verb == "start"
    assert {each for each in arguments if each.startswith("--")} <= _options_of("start")
    assert list(map(int, settings["RestartPreventExitStatus"].split())) == [
        ExitCode.USAGE, ExitCode.DATA_LOSS, ExitCode.DENIED,
    ]  # fmt: skip
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "holdfast.service"
    unit.write_text(text.replace("/opt/holdfast/bin/holdfast", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
