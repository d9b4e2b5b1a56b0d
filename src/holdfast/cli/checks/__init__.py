"""The checks of `holdfast doctor`: each looks at one thing and says what to do."""

from holdfast.cli.checks.check import Check, Status
from holdfast.cli.checks.folder import folder_checks
from holdfast.cli.checks.machine import machine_checks

__all__ = ["Check", "Status", "folder_checks", "machine_checks"]
