"""One check's answer."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from holdfast.cli.exit_codes import ExitCode


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  # a node runs, but not as it should
    FAIL = "fail"  # a node does not run, or data is damaged


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """What was looked at, what was found, and what to do about it."""

    name: str
    status: Status
    found: str
    advice: str = ""
    exit_code: ExitCode = ExitCode.FAILURE


Run = Callable[[], Check]
