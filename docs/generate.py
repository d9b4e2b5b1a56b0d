"""Writes docs/reference and the generated pictures from the code itself.

python docs/generate.py           writes the files
python docs/generate.py --check   exit code 1 if a file is not up to date
"""

import sys
from collections.abc import Callable
from pathlib import Path

from generator import (
    bpmn,
    content,
    dependencies,
    feel,
    interfaces,
    job_states,
    order,
    permissions,
    process_dsl,
    records,
    reports,
    settings,
    tables,
    ticks,
)

DOCS = Path(__file__).parent

FILES: dict[str, Callable[[], str]] = {
    "reference/records.md": records.page,
    "reference/job-states.md": job_states.page,
    "reference/configuration.md": settings.configuration_page,
    "reference/limits.md": settings.limits_page,
    "reference/errors.md": settings.errors_page,
    "reference/metrics.md": settings.metrics_page,
    "reference/http.md": interfaces.http_page,
    "reference/cli.md": interfaces.cli_page,
    "reference/python.md": interfaces.python_page,
    "reference/permissions.md": permissions.page,
    "reference/bpmn.md": bpmn.page,
    "reference/feel.md": feel.page,
    "reference/process-dsl.md": process_dsl.page,
    "reference/tables.md": tables.page,
    "reference/reports.md": reports.page,
    "reference/dependencies.md": dependencies.page_text,
    "pictures/task-life.svg": job_states.picture,
    "pictures/order.svg": order.picture,
    "pictures/content.svg": content.picture,
    "pictures/ticks.svg": ticks.picture,
}


def main(arguments: list[str]) -> int:
    """Writes or checks all files; returns the exit code."""
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print(__doc__, file=sys.stderr)
        return 2
    stale: list[str] = []
    for name, make in FILES.items():
        path, text = DOCS / name, make()
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(name)
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"docs/{name}: {'not up to date' if is_check else 'written'}")
    if is_check and stale:
        print("run: python docs/generate.py")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
