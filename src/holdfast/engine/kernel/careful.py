"""Processing with every record looked at: the slow way, taken when the quick one has failed.

The quick way encodes many records of a step at once. If that fails, or the journal refuses the
step, it is taken back and processed again with a `Careful`: what each command wrote is encoded by
itself, so the one command whose records cannot be stored is rejected and the others are done.
"""

from collections.abc import Callable, Sequence

from holdfast.engine.kernel.quarantine import Quarantine
from holdfast.errors import InvalidArgument
from holdfast.limits import (
    APPEND_BYTES_MAX,
    ENTRY_BYTES_MAX,
    ERROR_CHARS_MAX,
    MIB,
    REQUEST_BYTES_MAX,
)
from holdfast.records import Record

Encode = Callable[[Record], bytes]

# One append holds what was processed, what one more command leads to, the commands of a request
# that are only put on the log, and a MiB of what frames them.
_SHARE_BYTES_MAX = (APPEND_BYTES_MAX - REQUEST_BYTES_MAX - MIB) // 2


class Unstorable(InvalidArgument):
    """A command, or what it leads to, cannot be put on the log."""


class Careful:
    """Looks at each command of a step before it is done, and at its records afterwards."""

    def __init__(self, encode: Encode | None, quarantine: Quarantine | None = None) -> None:
        self._encode = encode  # None: the records are not looked at
        self._quarantine = quarantine
        self._step_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether further commands are to wait on the log for the next step."""
        return self._step_bytes > _SHARE_BYTES_MAX

    def returning(self, is_returning: bool) -> None:
        """What is processed from now on is left over or due, or is not."""
        if self._quarantine is not None:
            self._quarantine.is_returning = is_returning

    def begin(self, command: Record) -> bool:
        """A command is about to be processed: whether that is to be done with brakes on."""
        return self._quarantine is not None and self._quarantine.begin(command)

    def end(self) -> None:
        """The commands of the step are processed."""
        if self._quarantine is not None:
            self._quarantine.end()

    def check(self, records: Sequence[Record]) -> None:
        """Unstorable, with the reason, if one of the records of a command cannot be written."""
        if self._encode is None:
            return
        size_bytes = sum([_size_bytes(self._encode, record) for record in records])
        if size_bytes > _SHARE_BYTES_MAX:
            raise Unstorable(
                f"Expected a command that leads to at most {_SHARE_BYTES_MAX} bytes of records,"
                f" but it leads to {size_bytes}"
            )
        self._step_bytes += size_bytes


def _size_bytes(encode: Encode, record: Record) -> int:
    try:
        size_bytes = len(encode(record))
    except Exception as error:
        raise Unstorable(
            f"Expected values that can be stored, but a record has one that cannot:"
            f" {reason_of(error)}"
        ) from error
    if size_bytes > ENTRY_BYTES_MAX:
        raise Unstorable(
            f"Expected records of at most {ENTRY_BYTES_MAX} bytes, but one has {size_bytes}"
        )
    return size_bytes


def reason_of(error: BaseException) -> str:
    """An exception in words that can always be stored, whatever it says of itself."""
    try:
        words = f"{type(error).__name__}: {error}"
    except Exception:
        words = f"{type(error).__name__}, which cannot say more"
    return words[:ERROR_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
