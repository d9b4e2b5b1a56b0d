"""The `holdfast` command with a node whose partitions can go dark or break.

A partition named in the file `dark` gets nothing that is distributed to it, as if it could not be
reached; one named in the file `broken` throws for it. The files are looked at each time.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.main import run
from holdfast.engine.kernel import Command, Turn
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.values import ProcessIntent
from holdfast.engine.state import EngineState
from holdfast.gateway.processes import definitions
from holdfast.records import Record, ValueType
from holdfast.runtime.post import Post

_DEPLOY = int(ValueType.PROCESS), int(ProcessIntent.DEPLOY)
_deploy = DISPATCH.handlers[_DEPLOY]
_submit = Post._submit


def _is_named(partition: int, file: str) -> bool:
    path = Path(file)
    return path.exists() and str(partition) in path.read_text().split()


def _drop(self: Post, partition: int, commands: Sequence[Command], size_bytes: int) -> None:
    is_distributed = any(command.delivery for command in commands)
    if not (is_distributed and _is_named(partition, "dark")):
        _submit(self, partition, commands, size_bytes)


def _throw(turn: Turn[EngineState], command: Record) -> None:
    if _is_named(turn.partition, "broken"):
        raise ValueError("no such luck")
    _deploy(turn, command)


if __name__ == "__main__":
    definitions.DEPLOYMENT_WAIT_MS = 100  # what is dark is waited for in vain
    Post._submit = _drop
    DISPATCH.handlers[_DEPLOY] = _throw
    sys.exit(run(sys.argv[1:]))
