"""The alert rules and the dashboard: they use what nodes export, and each alert fires."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from alert_stories import HEALTHY, TOGETHER, TROUBLE
from promtool import promtool

from holdfast import Holdfast, TaskFailed
from known_metrics import check_exported, known_metrics

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "holdfast.rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "holdfast.json"
HOW_TO = ROOT / "docs" / "how-to" / "watch.md"
ADDED = {"instance", "job"}  # by Prometheus, to every sample


class Rule(NamedTuple):
    """An alert as the file has it."""

    alert: str
    expr: str
    text: str


def rules() -> list[Rule]:
    found: list[Rule] = []
    for block in RULES.read_text().split("      - alert: ")[1:]:
        alert, _, text = block.partition("\n")
        expr = re.search(r"expr: >-\n(.*?)\n        for:", text, re.DOTALL)
        assert expr is not None, alert
        found.append(Rule(alert, " ".join(expr[1].split()), text))
    return found


def panels() -> list[dict[str, Any]]:
    return json.loads(DASHBOARD.read_text())["panels"]


def exprs_of_dashboard() -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


EXPRS = [
    *[(rule.alert, rule.expr) for rule in rules()],
    *[(f"panel {title}", expr) for title, expr in exprs_of_dashboard()],
]


def test_a_node_exports_what_the_reference_lists(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "data") as app:

        @app.task(retries=0)
        def breaks() -> None:
            raise ValueError("no")

        worker = app.worker().start()
        with pytest.raises(TaskFailed):
            breaks.submit().result(timeout=30)
        worker.stop()
        names = check_exported(app.portal.call(app.api.node.metrics()))
    assert {
        "holdfast_jobs_waiting", "holdfast_incidents_open", "holdfast_workers",
        "holdfast_job_run_seconds_bucket", "holdfast_command_seconds_sum", "holdfast_log_bytes",
        "holdfast_journal_sync_seconds_count", "holdfast_disk_free_bytes",
    } <= names  # fmt: skip


@pytest.mark.parametrize(("place", "expr"), EXPRS, ids=[place for place, _ in EXPRS])
def test_every_metric_and_label_that_is_used_is_exported(place: str, expr: str) -> None:
    known = known_metrics() | {"up": set()}
    used = set(re.findall(r"\b(holdfast_\w+|up)\b", expr))
    assert used, f"{place} uses no metric"
    assert used <= known.keys(), f"{place}: {used - known.keys()}"
    labels = set.union(*(known[name] for name in used)) | ADDED
    for selected in re.findall(r"\{([^}]*)\}", expr):
        assert set(re.findall(r"(\w+)(?:=~|!=|!~|=)", selected)) <= labels, place
    for grouped in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expr):
        assert {each.strip() for each in grouped.split(",")} <= labels, place


def test_the_legends_of_the_dashboard_are_labels_of_what_they_show() -> None:
    for panel in panels():
        for target in panel.get("targets", ()):
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = re.search(r"by \(([^)]*)\)", target["expr"])
            known = known_metrics()
            names = re.findall(r"\bholdfast_\w+", target["expr"])
            there = (
                {each.strip() for each in grouped[1].split(",")}
                if grouped is not None
                else set[str]().union(*(known[name] for name in names)) | ADDED
            )
            assert shown <= there, f"{panel['title']}: {shown - there}"


def test_panels_have_places_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", rules(), ids=[rule.alert for rule in rules()])
def test_an_alert_says_what_happened_and_what_to_do(rule: Rule) -> None:
    for word in ("severity:", "summary:", "description:", "action:"):
        assert word in rule.text, f"{rule.alert} has no {word}"
    anchor = f"docs/how-to/watch.md#{rule.alert.lower()}"
    assert f"runbook_url: {anchor}" in rule.text
    assert f"\n### {rule.alert}\n" in HOW_TO.read_text(), f"{HOW_TO} does not say what to do"


# --- Prometheus itself ------------------------------------------------------------------------


def checked(*arguments: str) -> None:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def story(name: str, series: dict[str, str], firing: set[str]) -> dict[str, Any]:
    """An hour as a test of promtool: these alerts fire at its end, and no others."""
    expr = 'count by (alertname) (ALERTS{alertstate="firing"} > 0) > bool 0'
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": "60m",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(firing)
                ],
            }
        ],
    }


def test_prometheus_takes_the_rules() -> None:
    checked("check", "rules", "--lint=all", "--lint-fatal", str(RULES))


def test_prometheus_takes_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    records = [
        {"record": f"panel:{n}", "expr": expr.replace("$__rate_interval", "5m")}
        for n, (_, expr) in enumerate(exprs_of_dashboard())
    ]
    path = tmp_path / "panels.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": records}]}))
    checked("check", "rules", str(path))


def test_each_alert_fires_in_its_trouble_and_none_in_a_healthy_hour(tmp_path: Path) -> None:
    assert set(TROUBLE) == {rule.alert for rule in rules()}
    stories = [story("healthy", HEALTHY, set())]
    for alert, trouble in TROUBLE.items():
        stories.append(story(alert, HEALTHY | trouble, {alert} | TOGETHER.get(alert, set())))
    path = tmp_path / "stories.yml"
    path.write_text(json.dumps({"rule_files": [str(RULES)], "tests": stories}))
    checked("test", "rules", str(path))
