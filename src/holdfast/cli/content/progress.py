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
            text = f"nodes read: {number(progress.nodes)}"
            if progress.stored_bytes:
                text += f", stored: {bytes_text(progress.stored_bytes)}"
            status.update(text)

        yield tell
