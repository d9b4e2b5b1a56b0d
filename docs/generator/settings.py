"""Pages about what can be set and what can be met: configuration, limits, errors, metrics."""

from itertools import groupby

import msgspec

from generator.markdown import code, first_line, page, prose, table
from generator.source import constants_of, fields_of
from generator.units import value_text
from holdfast import limits
from holdfast.cli.exit_codes import MEANINGS, ExitCode, exit_code_of
from holdfast.config import FILE_NAME, Config
from holdfast.engine.jobs.values import JobsReported
from holdfast.errors import ERRORS
from holdfast.gateway.http.problems import STATUS_OF_CODE
from holdfast.metrics import (
    BatchNumbers,
    ContentNumbers,
    DeliveryNumbers,
    DiskNumbers,
    DistributionGauges,
    GroupNumbers,
    ImportNumbers,
    Metrics,
    PipelineLag,
    TransactionGauges,
    WorkerGauges,
    WorkGauges,
)
from holdfast.metrics.cluster import MemberNumbers
from holdfast.sequence.etcd_numbers import EtcdNumbers
from holdfast.sequence.tick_numbers import TickNumbers

_UNITS = ("KIB", "MIB")


def configuration_page() -> str:
    """Every field of `Config`."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(Config)}
    rows = [
        (
            code(field.name), code(f"HOLDFAST_{field.name.upper()}"), code(field.annotation),
            _default(field.name, defaults[field.name]), field.comment,
        )
        for field in fields_of(Config)
    ]  # fmt: skip
    return page(
        "Configuration",
        f"{prose(Config.__doc__)} Later sources take precedence: the defaults, `{FILE_NAME}`"
        " in the data folder, the environment, options of the command line. A client that connects"
        f" to a node reads `{FILE_NAME}` in the current folder.",
        table(("Field", "Environment", "Type", "Default", ""), rows),
        "Numbers are written without units: bytes for names with `bytes`, milliseconds for names"
        " that end in `ms`.",
        f"```toml\n# {FILE_NAME}\npartitions = 16\nkeep_result_ms = 86_400_000\n```",
        "`holdfast config show FOLDER` prints every setting with its value and its source. A name"
        f" that is unknown, in `{FILE_NAME}` or as `HOLDFAST_*` in the environment, is refused.",
        "Clients also read `HOLDFAST_URL`, the address of the node; `HOLDFAST_TOKEN`, the"
        " [token](../how-to/authorization.md) for it; and `HOLDFAST_CA`, the"
        " [certificate authority](../how-to/listen-with-tls.md) that they trust.",
    )


def _default(name: str, value: object) -> str:
    """What would be written in the file, and what that is in larger units."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "" if value is None else code(msgspec.json.encode(value).decode())
    text = value_text(name, value)
    return code(str(value)) + (f" ({text})" if text[-1].isalpha() else "")


def limits_page() -> str:
    """Every limit, by section."""
    found = [field for field in constants_of(limits) if field.name not in _UNITS]
    parts = [prose(limits.__doc__)]
    for section, members in groupby(found, lambda field: field.section):
        rows = [
            (code(field.name), value_text(field.name, getattr(limits, field.name)), field.comment)
            for field in members
        ]
        parts += [f"## {section.capitalize()}", table(("Limit", "Value", "Why"), rows)]
    return page("Limits", *parts)


def errors_page() -> str:
    """Every error with its names in all places, and the exit codes."""
    rows = [
        (
            code(name), code(f"holdfast.{kind.__name__}"), str(STATUS_OF_CODE[name]),
            str(int(exit_code_of(name))), first_line(kind.__doc__),
        )
        for name, kind in ERRORS.items()
    ]  # fmt: skip
    exits = [(str(int(each)), code(each.name), MEANINGS[each]) for each in ExitCode]
    return page(
        "Errors",
        "An error has one code. It is the same on the log, over HTTP, in Python and in responses"
        " about many items at once. Every class is a `holdfast.HoldfastError` with `code`,"
        " `message` and `fields`.",
        table(("Code", "Python", "HTTP", "Exit code", "Meaning"), rows),
        "Over HTTP an error is a problem in JSON (RFC 9457, `application/problem+json`); see"
        " [Problem](http.md#problem). A `RESOURCE_EXHAUSTED` comes with `retryAfterMs` and the"
        " header `Retry-After`.",
        "## Exit codes",
        "Of the `holdfast` command. With `--json` the error is JSON on standard error.",
        table(("Code", "Name", "Meaning"), exits),
    )


class _EtcdSource:
    """Coordination that nobody has used yet."""

    numbers = EtcdNumbers()
    available = True
    rolled_back = ""


def metrics_page() -> str:
    """Every metric of a node."""
    metrics = Metrics()
    metrics.partition(1)
    metrics.distribution.of(2)
    metrics.distribution.gauges = lambda: DistributionGauges({1: 0}, {2: 0}, {2: 0})
    one = {("", ""): 0}
    metrics.work.gauges = {1: WorkGauges({"": 0}, {"": 0}, {"": 0.0}, one)}
    metrics.work.workers = lambda: WorkerGauges({"": 0}, {"": 0})
    metrics.work.reported(JobsReported("", 0, 0))
    metrics.storage.disk = lambda: DiskNumbers(0, 0, 0, 0)
    metrics.http.refuse("")
    metrics.transactions.gauges = lambda: TransactionGauges({1: 0}, {1: 0}, 0.0)
    metrics.pipeline_lag = lambda: PipelineLag({1: 0}, 0.0)
    metrics.cluster.numbers = lambda: MemberNumbers(*[0] * 8, {"": 0}, 0, 0)
    metrics.batch.numbers = lambda: BatchNumbers(one, one, one, 0.0)
    metrics.order.numbers = TickNumbers()
    metrics.etcd.source = _EtcdSource()
    metrics.content.numbers = lambda: ContentNumbers(
        {"": 0}, [DeliveryNumbers("", "", 0, False, 0)], [ImportNumbers("", 0, 0, 0.0)], 0, 0, 0, 0
    )
    metrics.groups.numbers = lambda: [GroupNumbers("", *[0] * 11)]
    rows = []
    for metric in metrics.collect():
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        known = {label for sample in metric.samples for label in sample.labels} - {"le"}
        rows.append(
            (code(name), metric.type, ", ".join(map(code, sorted(known))), metric.documentation)
        )
    return page(
        "Metrics",
        "`GET /metrics` gives them in Prometheus' text format.",
        table(("Metric", "Type", "Labels", "Meaning"), rows),
    )
