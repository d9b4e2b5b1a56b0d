"""Runs the benchmarks: `python -m bench --only journal,tasks --rounds 5 --quick --strict`."""

import argparse
import importlib
import pkgutil
import sys
from typing import Any

from rich.console import Console

import bench
from bench import store
from bench.harness import BENCHMARKS, ROUNDS, Run, UnmeasurableError, run_benchmark
from bench.plot import draw
from bench.table import Watcher, print_table

EXIT_OK, EXIT_GOAL_NOT_MET = 0, 1
LOG_COLUMNS = 110  # the width of the table where nobody watches


def main(arguments: list[str] | None = None) -> int:
    discover()
    options = _options(arguments)
    names = options.only or list(BENCHMARKS)
    console = Console(width=None if sys.stdout.isatty() else LOG_COLUMNS)
    run = Run(quick=options.quick, rounds=options.rounds, figures=options.figure)
    rows = run_all(names, run, console)
    print_table(console, [row for row in rows if row["name"] in names])
    for path in draw(rows):
        console.print(f"drawn: {path.relative_to(store.BUILD.parent)}", highlight=False)
    console.print(f"saved: {store.RESULTS.relative_to(store.BUILD.parent)}", highlight=False)
    unmet = any(row["met"] is False for row in rows if row["name"] in names)
    return EXIT_GOAL_NOT_MET if options.strict and unmet else EXIT_OK


def discover() -> None:
    """Imports every module and package beside this one, so that its benchmarks are registered."""
    for module in pkgutil.iter_modules(bench.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"bench.{module.name}")


def run_all(names: list[str], run: Run, console: Console) -> list[dict[str, Any]]:
    """Runs one after the other and saves after each figure, so that little is ever lost."""
    rows = store.load()
    with Watcher(console) as watcher:
        for name in names:
            watcher.preparing(name)
            done: list[dict[str, Any]] = []
            replaced = [] if run.figures else [name]  # figures that are gone are forgotten
            try:
                for result in run_benchmark(name, run, watcher):
                    done.append(result.row())
                    store.save(store.merge(rows, done, replaced))
            except UnmeasurableError as unavailable:
                console.print(f"  skipped: {unavailable}", markup=False)
                continue
            rows = store.merge(rows, done, replaced)
    return rows


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
    parser.add_argument("--strict", action="store_true", help="exit 1 if a goal is not met")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
