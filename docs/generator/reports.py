"""docs/reference/reports.md: every report, its columns and its picture, from their declarations."""

from generator import markdown
from generator.markdown import code, table
from holdfast.pipeline.report.declare import Report
from holdfast.pipeline.report.registry import REPORTS
from holdfast.pipeline.report.results import FOLDER

_TYPES = {
    "timestamp": "timestamp, UTC",
    "bigint": "64-bit integer",
    "int": "32-bit integer",
    "double": "64-bit float",
    "string": "text",
    "boolean": "boolean",
}


def page() -> str:
    """The reports in the order in which they are shown."""
    names = [f"[{report.name}](#{report.name})" for report in REPORTS.values()]
    parts = [
        "The reports of `holdfast report`, from [the tables](tables.md) that the pipeline keeps:"
        f" {', '.join(names)}. Spark computes them. Each is short, and is stored beside the tables"
        f" as Parquet, in `tables/{FOLDER}/<name>/<name>.parquet`.",
        "`holdfast report` shows all of them and draws them on one page,"
        f" `tables/{FOLDER}/overview.png`. To select some: `holdfast report latency incidents"
        " ./data`. The options are those of [the command](cli.md): `--since` limits the time,"
        " `--csv` writes the columns below, `--png` and `--svg` draw each report on a separate"
        " page, and `--json` prints the rows.",
        "Every report shows the time of its data, and its lag behind the log: below the text, in"
        " each picture, as `freshness` in `--json`, and as the metadata `holdfast.as_of` of the"
        " Parquet file. `holdfast report` warns if records are missing and no pipeline runs.",
        "An empty cell means that there is no such name, or no measurement.",
    ]
    for report in REPORTS.values():
        parts += _section(report)
    return markdown.page("Reports", *parts)


def _section(report: Report) -> list[str]:
    rows = [(code(each.name), _TYPES[each.type], each.unit, each.about) for each in report.columns]
    return [
        f"## {report.name}",
        f"**{report.title}**: {report.about}. {report.asks}",
        f"One row {report.row}.",
        table(("Column", "Type", "Unit", ""), rows),
        f"The picture: {report.picture}",
        f"With `--since`: {report.since}",
    ]
