"""Distribution: what it costs to tell a command to all partitions, and to one that was dark."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.distribution import our_distribution

FEW, MANY = 3, 64
DEPLOYMENTS = 200
DARK_SECONDS = 60
MISSED = 100


@benchmark("distribution")
def distribution(run: Run) -> Iterator[Figure]:
    folder = run.folder("distribution")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        few = stack.enter_context(our_distribution(folder / "few", FEW))
        many = stack.enter_context(our_distribution(folder / "many", MANY))
        count = run.scaled(DEPLOYMENTS)
        for ours in (few, many):
            yield Figure(
                name=f"records on the origin by target, {ours.partitions} partitions",
                against="two",
                goal="<= 1",
                unit="records",
                ours=ours.records_per_target,
                peer=fixed(2),
            )
        yield Figure(
            name=f"time by target, {MANY} partitions",
            against=f"{FEW} partitions",
            goal="<= 1.2",
            unit="us/target",
            ours=lambda: many.distribute(count) / count / (MANY - 1) * 1e6,
            peer=lambda: few.distribute(count) / count / (FEW - 1) * 1e6,
        )
        # As many dark partitions as rounds: one comes back in each.
        back = stack.enter_context(our_distribution(folder / "dark", run.rounds + 1))
        back.distribute(1)
        back.go_dark(MISSED, DARK_SECONDS / 10 if run.quick else DARK_SECONDS)
        yield Figure(
            name=f"a partition that missed {MISSED} in {DARK_SECONDS} s has them",
            against="a second",
            goal="<= 1",
            unit="s",
            ours=back.come_back,
            peer=fixed(1.0),
            warm_up=False,
        )
