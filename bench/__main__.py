"""Runs the benchmarks: `python -m bench --only journal,tasks --rounds 5 --quick --strict`."""

import argparse
import importlib
import pkgutil
import sys
from typing import Any

from rich.console import Console

import bench
from bench import recorded, store
from bench.harness import BENCHMARKS, ROUNDS, Run, UnmeasurableError, run_benchmark
from bench.plot import draw
from bench.table import Watcher, print_costs, print_table

EXIT_OK, EXIT_GOAL_NOT_MET = 0, 1  # or a unit costs more than recorded
LOG_COLUMNS = 110  # the width of the table where nobody watches


def main(arguments: list[str] | None = None) -> int:
    discover()
    options = _options(arguments)
    names = options.only or list(BENCHMARKS)
    console = Console(width=None if sys.stdout.isatty() else LOG_COLUMNS)
    run = Run(
        quick=options.quick, rounds=options.rounds, figures=options.figure, alone=options.alone
    )
    measured = run_all(names, run, console)
    if not run.alone:
        print_table(console, measured)
        for path in draw(measured):
            console.print(f"drawn: {path.relative_to(store.BUILD.parent)}", highlight=False)
        console.print(f"saved: {store.RESULTS.relative_to(store.BUILD.parent)}", highlight=False)
    print_costs(console, measured)
    if options.record:
        record(measured)
        console.print(f"recorded: {recorded.RECORDED.relative_to(store.BUILD.parent)}")
    unmet = any(row["met"] is False or is_slower(row) for row in measured)
    return EXIT_GOAL_NOT_MET if options.strict and unmet else EXIT_OK


def is_slower(row: dict[str, Any]) -> bool:
    """Whether a unit costs more than was recorded."""
    return row.get("cost", {}).get("recorded", {}).get("word") == recorded.SLOWER


def record(rows: list[dict[str, Any]]) -> None:
    """What units cost in this run is what later runs are compared with."""
    recorded.save(
        {
            recorded.name_of(row["name"], row["figure"]): row["cost"]["yardsticks"]
            for row in rows
            if row.get("cost")
        }
    )


def discover() -> None:
    """Imports every module and package beside this one, so that its benchmarks are registered."""
    for module in pkgutil.iter_modules(bench.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"bench.{module.name}")


def run_all(names: list[str], run: Run, console: Console) -> list[dict[str, Any]]:
    """Runs one after the other and saves after each figure, so that little is ever lost.

    The rows that were measured. What was measured without peers is not saved: it has no ratio.
    """
    rows = [] if run.alone else store.earlier_rows()
    measured: list[dict[str, Any]] = []
    with Watcher(console) as watcher:
        for name in names:
            watcher.preparing(name)
            done: list[dict[str, Any]] = []
            replaced = [] if run.figures else [name]  # figures that are gone are forgotten
            try:
                for result in run_benchmark(name, run, watcher):
                    done.append(result.row())
                    if not run.alone:
                        store.save(store.merge(rows, done, replaced))
            except UnmeasurableError as unavailable:
                console.print(f"  skipped: {unavailable}", markup=False)
                continue
            rows = store.merge(rows, done, replaced)
            measured += done
    return measured


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    known = ", ".join(BENCHMARKS)

    def names(text: str) -> list[str]:
        wanted = [name for name in text.split(",") if name]
        unknown = [name for name in wanted if name not in BENCHMARKS]
        if unknown:
            raise argparse.ArgumentTypeError(f"expected some of {known}; found {unknown[0]}")
        return wanted

    def rounds(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"expected a number of rounds from 1 on, found {text}")
        return int(text)

    parser.add_argument("--only", type=names, default=[], help=f"some of: {known}")
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        help="only figures with this text in their names; may be repeated",
    )
    parser.add_argument("--rounds", type=rounds, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, for a try")
    parser.add_argument(
        "--alone", action="store_true", help="only what a unit of ours costs, without peers"
    )
    parser.add_argument(
        "--record", action="store_true", help="write what units cost to bench/recorded.json"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit 1 if a goal is not met or a unit costs more"
    )
    options = parser.parse_args(arguments)
    if options.record and options.quick:
        parser.error("expected a whole run to record, found --quick")
    return options


if __name__ == "__main__":
    sys.exit(main())
