"""The pipeline beside a node: the stream, the upkeep of the tables, and how far behind they are.

While it follows the log it also answers requests for selections, with the same Spark.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.logs import log
from holdfast.pipeline.log import is_url
from holdfast.pipeline.select.presence import Presence, Present
from holdfast.pipeline.select.requests import Request
from holdfast.pipeline.select.serving import SelectionServing
from holdfast.pipeline.session import CONNECT, open_session
from holdfast.pipeline.tables.progress import TableProgress, load_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FAILURES_MAX = 3  # of the stream, one after the other at the same place
RESTART_SECONDS_MAX = 10.0
LOOK_SECONDS = 1  # how soon a run ends that is told to, and how often it says how far it is

OnStart = Callable[[], None]
OnBatch = Callable[[TableProgress], None]


class _Stuck:
    """Whether the stream has failed too often without getting on."""

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._batch = load_progress(tables).batch
        self._failures = 0

    def __call__(self, state: RetryCallState) -> bool:
        batch = load_progress(self._tables).batch
        self._failures = self._failures + 1 if batch == self._batch else 1
        self._batch = batch
        return self._failures >= FAILURES_MAX


def _cause(state: RetryCallState) -> str:
    error = state.outcome.exception() if state.outcome is not None else None
    return str(error).partition("\n")[0]


class Pipeline:
    """Keeps the tables of one node fresh until it is stopped."""

    def __init__(
        self,
        address: str,
        tables: Path,
        config: Config,
        clock: Clock,
        stopping: Event | None = None,
    ) -> None:
        """`stopping` ends a run soon, from a signal too; the next one redoes what is cut off."""
        # The processes that read and write them may have another working directory.
        self._address = address if is_url(address) else str(Path(address).absolute())
        self._tables = tables.absolute()
        self._config = config
        self._clock = clock
        self._told = load_progress(self._tables).batch
        self._stopping = stopping if stopping is not None else Event()
        self._spark: SparkSession | None = None
        self._presence: Presence | None = None  # while it runs

    def run(
        self,
        *,
        once: bool = False,
        upto: Mapping[int, int] | None = None,
        on_start: OnStart | None = None,
        on_batch: OnBatch | None = None,
    ) -> None:
        """Follows the log until it is interrupted; with `once` only as far as it is now.

        With positions it takes what is before them, once.

        A stream that fails, because a process of Spark's died, is started again where it was; one
        that fails several times at the same place is given up.
        """
        from pyspark.errors import PySparkException, StreamingQueryException

        attempts = Retrying(
            retry=retry_if_exception_type(StreamingQueryException),
            stop=_Stuck(self._tables),
            wait=wait_exponential(multiplier=0.5, max=RESTART_SECONDS_MAX),
            before_sleep=lambda state: log.warning("stream failed", error=_cause(state)),
            reraise=True,
        )
        try:
            with Presence(self._tables) as self._presence:
                attempts(self._follow, once, upto, on_start, on_batch)
            self._leave_server()
        except PySparkException as error:
            raise Unavailable(f"The stream failed: {error}") from error

    def _leave_server(self) -> None:
        """A server would keep our session for an hour; a Spark of our own ends with the process."""
        if self._spark is not None and self._config.spark_master.startswith(CONNECT):
            self._spark.stop()

    def _follow(
        self,
        once: bool,
        upto: Mapping[int, int] | None,
        on_start: OnStart | None,
        on_batch: OnBatch | None,
    ) -> None:
        from pyspark.errors import PySparkException

        query = self.start(once=once, upto=upto)
        if on_start is not None:
            on_start()
        serving = SelectionServing(self._tables, self._select, self._clock, self._on_warm)
        if not once:  # nobody could rely on a run that is about to end
            serving.start()
        try:
            while not self._stopping.is_set() and not query.awaitTermination(LOOK_SECONDS):
                self._tell(on_batch)
        finally:
            serving.stop()
            with suppress(PySparkException):  # of a server that is gone, which was the reason
                query.stop()
            self._tell(on_batch)

    def _on_warm(self) -> None:
        if self._presence is not None:
            self._presence.tell(Present.SERVING)

    def _select(self, wanted: Request) -> None:
        """Makes the snapshot that a request asks for; the tables are as far as it wants."""
        from holdfast.pipeline.schema import TABLES
        from holdfast.pipeline.select.selection import select

        assert self._spark is not None, "requests are answered while the stream runs"
        table = TABLES.get(wanted.table)
        if table is None:
            raise InvalidArgument(f"Expected a table, but found {wanted.table!r}", field="table")
        select(
            self._spark, self._tables, table, wanted.filter, wanted.as_of,
            self._clock.monotonic(), visible=wanted.visible, name=wanted.name, clock=self._clock,
        )  # fmt: skip

    def _tell(self, on_batch: OnBatch | None) -> None:
        """How far the tables are, if that is news: who takes micro-batches may be a server."""
        progress = load_progress(self._tables)
        if progress.batch == self._told:
            return
        self._told = progress.batch
        log.info("tables committed", batch=progress.batch, positions=progress.records())
        if on_batch is not None:
            on_batch(progress)

    def start(
        self, *, once: bool = False, upto: Mapping[int, int] | None = None
    ) -> "StreamingQuery":
        """Begins; the query is Spark's own."""
        from holdfast.pipeline.project import Projection

        self._spark = open_session(self._config, self._tables / "_spark", lasting=not once)
        small = self._config.spark_small_records
        projection = Projection(self._address, self._tables, self._clock, small)
        return projection.start(self._spark, available_now=once, upto=upto)
