"""A line on the terminal that tells how far a publication is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.cli.output import bytes_text, number
from holdfast.client.content_progress import Progress, PublishProgress


@contextmanager
def publishing() -> Iterator[Progress | None]:
    """What is to be told of progress; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("reading") as status:

        def tell(progress: PublishProgress) -> None:
            text = f"{number(progress.nodes)} nodes read"
            if progress.stored_bytes:
                text += f", {bytes_text(progress.stored_bytes)} stored"
            status.update(text)

        yield tell
