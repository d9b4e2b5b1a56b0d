"""All reports, in the order in which they are shown."""

from holdfast.errors import InvalidArgument
from holdfast.pipeline.report.backlog import BACKLOG
from holdfast.pipeline.report.content import CONTENT_REPORT
from holdfast.pipeline.report.declare import Report
from holdfast.pipeline.report.incidents import INCIDENTS_REPORT
from holdfast.pipeline.report.latency import LATENCY
from holdfast.pipeline.report.partitions import PARTITIONS
from holdfast.pipeline.report.throughput import THROUGHPUT

REPORTS: dict[str, Report] = {
    report.name: report
    for report in (THROUGHPUT, BACKLOG, LATENCY, INCIDENTS_REPORT, PARTITIONS, CONTENT_REPORT)
}


def reports_named(names: list[str]) -> list[Report]:
    """The reports with these names, in their order; all for none."""
    unknown = [name for name in names if name not in REPORTS]
    if unknown:
        known = ", ".join(REPORTS)
        raise InvalidArgument(f"Expected one of the reports {known}, but found {unknown[0]!r}")
    return [report for report in REPORTS.values() if not names or report.name in names]
