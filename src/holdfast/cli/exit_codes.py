"""How a command ended, as the number that scripts see."""

from enum import IntEnum

from holdfast.errors import Code


class ExitCode(IntEnum):
    """Stable: scripts depend on the numbers."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    CONFLICT = 5
    DATA_LOSS = 6
    TASK_FAILED = 7
    DEADLINE_EXCEEDED = 8
    RESOURCE_EXHAUSTED = 9
    DENIED = 10
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "a check failed, or holdfast has a bug",
    ExitCode.USAGE: "the command is invalid",
    ExitCode.NOT_FOUND: "the resource does not exist",
    ExitCode.UNAVAILABLE: "no node answers, its port is taken, or its folder is in use",
    ExitCode.CONFLICT: "the resource exists already, or its state does not allow this",
    ExitCode.DATA_LOSS: "stored bytes are damaged",
    ExitCode.TASK_FAILED: "a task, or an item of a batch operation, failed or has an incident",
    ExitCode.DEADLINE_EXCEEDED: "the task has not ended within the timeout",
    ExitCode.RESOURCE_EXHAUSTED: "a limit is reached; retry later",
    ExitCode.DENIED: "not allowed",
    ExitCode.INTERRUPTED: "stopped at once by a signal",
}

_OF_CODE: dict[Code, ExitCode] = {
    Code.INVALID_ARGUMENT: ExitCode.USAGE,
    Code.NOT_FOUND: ExitCode.NOT_FOUND,
    Code.ALREADY_EXISTS: ExitCode.CONFLICT,
    Code.INVALID_STATE: ExitCode.CONFLICT,
    Code.UNAUTHORIZED: ExitCode.DENIED,
    Code.FORBIDDEN: ExitCode.DENIED,
    Code.RESOURCE_EXHAUSTED: ExitCode.RESOURCE_EXHAUSTED,
    Code.DEADLINE_EXCEEDED: ExitCode.DEADLINE_EXCEEDED,
    Code.UNAVAILABLE: ExitCode.UNAVAILABLE,
    Code.MOVED: ExitCode.UNAVAILABLE,
    Code.UNKNOWN: ExitCode.UNAVAILABLE,
    Code.DATA_LOSS: ExitCode.DATA_LOSS,
    Code.TASK_FAILED: ExitCode.TASK_FAILED,
    Code.ABORTED: ExitCode.CONFLICT,
    Code.INTERNAL: ExitCode.FAILURE,
}


def exit_code_of(code: Code) -> ExitCode:
    """The exit code of an error's code."""
    return _OF_CODE[code]
