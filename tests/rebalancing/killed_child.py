"""Divides a folder anew and kills itself when it is told of the n-th step of a kind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from holdfast.rebalancing import rebalance


def main(folder: str, processes: str, step: str, number: str) -> None:
    left = int(number)

    def told(what: str, size_bytes: int) -> None:
        nonlocal left
        del size_bytes
        if what == step:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(rebalance(Path(folder), int(processes), told))


main(*sys.argv[1:])
