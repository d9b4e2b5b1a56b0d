"""`holdfast content`: publish and subscribe; what people look at and steer is beside this."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.content import farm, queues
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, LogLevel, Url
from holdfast.limits import RETRIES_MAX

if TYPE_CHECKING:
    from holdfast.client import Holdfast

app = typer.Typer(
    name="content",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Publish trees of files to any number of places, and see who is how far behind.",
)

_Publisher = Annotated[str, typer.Argument(help="The publisher's name.", metavar="PUBLISHER")]
_Store = Annotated[
    str | None,
    typer.Option(
        help="Upload large files directly to the node's blob store; default: through the node.",
        metavar="URL",
    ),
]


@app.command(
    epilog=examples(
        "holdfast content publish site ./site                      all of a folder",
        "holdfast content publish site ./site --path /pages/home   one page and all below it",
        "holdfast content publish site ./site --path /pages --shallow",
        "holdfast content publish site --delete --path /pages/old",
        "holdfast content publish site site.sqlite --metadata release=42 --id release-42",
    )
)
def publish(
    publisher: _Publisher,
    source: Annotated[
        str | None,
        typer.Argument(help="A folder or a content repository.", metavar="SOURCE"),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path", help="What to publish. Can be given more than once.", metavar="PATH"
        ),
    ] = None,
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Without the children of the paths.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the paths and all below them instead.")
    ] = False,
    invalidate: Annotated[
        bool, typer.Option("--invalidate", help="Only invalidate the paths.")
    ] = False,
    test: Annotated[
        bool, typer.Option("--test", help="Only show that a package can be published.")
    ] = False,
    skip_links: Annotated[
        bool,
        typer.Option("--skip-links", help="Skip symbolic links; otherwise they are an error."),
    ] = False,
    metadata: Annotated[
        list[str] | None,
        typer.Option(help="Goes with the package. Can be given more than once.", metavar="K=V"),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option("--id", help="Idempotency: the same id is published once.", metavar="ID"),
    ] = None,
    store: _Store = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Publish a folder or a part of it. The package is durable when this returns."""
    from holdfast.cli.content.progress import publishing
    from holdfast.cli.content.words import pairs
    from holdfast.cli.output import number, print_json, print_line, print_note
    from holdfast.errors import InvalidArgument

    if delete + invalidate + test > 1:
        raise InvalidArgument("Expected one of --delete, --invalidate and --test, but found more")
    if (delete or invalidate) and not path:
        raise InvalidArgument("Expected --path, but found none; name what is meant")
    if not (delete or invalidate or test) and source is None:
        raise InvalidArgument("Expected a SOURCE to publish from, but found none")
    given = pairs(metadata or (), "--metadata")
    with (
        _connected(url) as app,
        app.publisher(publisher, source, skip_links=skip_links, store=store) as pub,
    ):
        if delete:
            receipt = pub.delete(path or (), metadata=given, package_id=id_)
        elif invalidate:
            receipt = pub.invalidate(path or (), metadata=given, package_id=id_)
        elif test:
            receipt = pub.test()
        else:
            with publishing() as progress:
                receipt = pub.add(
                    path or "/", deep=not shallow, metadata=given, package_id=id_,
                    progress=progress,
                )  # fmt: skip
        skipped = pub.skipped
    if skipped:
        print_note(f"left out {number(len(skipped))} symbolic links, such as {skipped[0]}")
    if json:
        print_json(receipt)
        return
    waited = f", {receipt.waited_ms / 1000:.1f} s held back" if receipt.waited_ms else ""
    print_line(
        f"{publisher} {number(receipt.number)}  at offset {receipt.offset}"
        f"  package {receipt.package_id}{waited}"
    )


@app.command(
    epilog=examples(
        "holdfast content subscribe edge-7 --of site --into ./www",
        "holdfast content subscribe edge-7 --of site --into www.sqlite --retries 5 --editable",
        "holdfast content subscribe edge-8 --of site --into ./www --seed-from edge-7",
        "holdfast content subscribe stage --of site --into ./www --only-after golden",
        "holdfast content subscribe job --of site --into ./www --once   until all is there",
    )
)
def subscribe(
    subscriber: Annotated[str, typer.Argument(help="The subscriber's name.", metavar="SUBSCRIBER")],
    of: Annotated[
        list[str],
        typer.Option("--of", help="A publisher. Can be given more than once.", metavar="PUBLISHER"),
    ],
    into: Annotated[
        str,
        typer.Option("--into", help="A folder or a content repository.", metavar="STORE"),
    ],
    editable: Annotated[bool, typer.Option("--editable", help="Its queue may be cleared.")] = False,
    retries: Annotated[
        int,
        typer.Option(
            min=-1,
            max=RETRIES_MAX,
            help="Retries of a package before it gives up; -1 never gives up.",
        ),
    ] = -1,
    only_after: Annotated[
        str | None,
        typer.Option(help="Import a package only after this subscriber has.", metavar="SUBSCRIBER"),
    ] = None,
    seed_from: Annotated[
        str | None,
        typer.Option(help="Start with a snapshot of this subscriber.", metavar="SUBSCRIBER"),
    ] = None,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap",
            help="Start with the oldest package on the log, even if earlier ones are missing.",
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Exit when everything published so far is imported.")
    ] = False,
    store: _Store = None,
    log_level: LogLevel = "warning",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Import published packages into a folder until stopped; resumes at its offset."""
    from holdfast.cli.content.running import run
    from holdfast.logs import configure

    configure(json=json, level=log_level)
    with _connected(url) as app:
        opened = app.subscriber(
            subscriber, of=of, into=into, editable=editable,
            retries_max=retries, only_after=only_after, seed_from=seed_from,
            accept_gap=accept_gap, store=store,
        )  # fmt: skip
        run(opened, into, as_json=json, once=once)


def _connected(url: str) -> "Holdfast":
    from holdfast.client import Holdfast

    return Holdfast.connect(url, patience=30.0)


queues.register(app)
farm.register(app)
