"""An app that only knows its tasks: what `Holdfast.open` gives in a worker's child process."""

import os
from typing import Any

from holdfast.errors import Unavailable

DETACHED = "HOLDFAST_DETACHED"


class DetachedApi:
    """Refuses everything: the parent process holds the node."""

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise Unavailable(
                f"Expected a node for {name}(), but this is a worker's child process;"
                " submit from tasks by Holdfast.connect(url)"
            )

        return refuse


def mark_detached() -> None:
    """From now on this process opens nothing."""
    os.environ[DETACHED] = "1"
