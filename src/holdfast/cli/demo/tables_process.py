"""The demo's pipeline: `python -m holdfast.cli.demo.tables_process FOLDER TABLES REPORT`.

It keeps the tables of a node fresh, as `holdfast pipeline run` does. When it is told a folder on
its standard input, it makes the report with the Spark that it has already, draws it there and
answers with the path of the picture. It ends, with all that it started, when its input does.
"""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.config import Config, load_config
from holdfast.logs import configure
from holdfast.pipeline.freshness import freshness_of, freshness_text
from holdfast.pipeline.log import open_log
from holdfast.pipeline.report.draw.pages import draw_report
from holdfast.pipeline.report.registry import reports_named
from holdfast.pipeline.report.results import make, store
from holdfast.pipeline.report.tables import open_tables
from holdfast.pipeline.service import Pipeline
from holdfast.pipeline.session import open_session


def main(node: str, root: Path, name: str) -> None:
    """Follows the log until it is ended from outside."""
    config = load_config(Path(node))
    configure(json=config.log_json, level=config.log_level)
    threading.Thread(target=_listen, args=(config, node, root, name), daemon=True).start()
    Pipeline(node, root, config, SystemClock()).run()


def _listen(config: Config, node: str, root: Path, name: str) -> None:
    """Does what the process that started us asks for, until that process is gone."""
    try:
        for line in sys.stdin:
            sys.stdout.write(f"{_draw(config, node, root, name, Path(line.strip()))}\n")
            sys.stdout.flush()
    except Exception:
        traceback.print_exc()
    # Not with a word: Spark's Java would first write an archive of classes for its next start.
    os.killpg(0, signal.SIGKILL)


def _draw(config: Config, node: str, root: Path, name: str, folder: Path) -> Path:
    spark = open_session(config, root / "_spark")  # the one that the stream runs in
    tables = open_tables(spark, root)
    [result] = make(spark, tables, reports_named([name]))
    log = open_log(node)
    try:
        freshness = freshness_of(root, tables.progress, log.bounds(), SystemClock().now_ms())
    finally:
        log.close()
    store(root, [result], freshness)
    return draw_report(result, freshness_text(freshness), folder, "png")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
