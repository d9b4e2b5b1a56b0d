"""Logs: events with fields, for the standard library's logger `holdfast`.

A program that holdfast is a part of gets them through its own handlers. The `holdfast` command
writes them to standard error, as text or as JSON lines. The only module that imports structlog.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, NamedTuple

from holdfast.errors import InvalidArgument

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_LOGGER = logging.getLogger("holdfast")


class Logger:
    """Writes events: `log.warning("report refused", job=key)`.

    `exc_info` is an exception, whose traceback is written; `traceback` is the text of one that was
    raised in another process.
    """

    def debug(self, event: str, /, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, /, **fields: Any) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, event, {**fields, "exc_info": sys.exception()})

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if not _LOGGER.isEnabledFor(level):
            return
        error, text = fields.pop("exc_info", None), fields.pop("traceback", None)
        raised = (type(error), error, error.__traceback__) if error is not None else None
        # Behind this method and the one that names the level is the caller.
        file, line, function, _ = _LOGGER.findCaller(stacklevel=3)
        record = _LOGGER.makeRecord(
            _LOGGER.name, level, file, line, _message(event, fields), (), raised, function,
            {"event": event, "fields": fields},
        )  # fmt: skip
        if text is not None:
            record.exc_text = text
        _LOGGER.handle(record)


log = Logger()


def _message(event: str, fields: dict[str, Any]) -> str:
    """The event in one line, for the handlers of others."""
    return " ".join([event, *(f"{name}={_shown(value)}" for name, value in fields.items())])


def _shown(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and text and " " not in text else repr(text)


# --- where they are written -------------------------------------------------------------------


class LogSettings(NamedTuple):
    """How this process writes its logs."""

    json: bool
    level: str


class _Rendered(logging.Formatter):
    """Renders a record of anybody's: our own with their fields, others with their message."""

    def __init__(self, json: bool) -> None:
        super().__init__()
        import structlog  # it takes a while to load, and only what writes logs needs it

        self._render: Any = (
            structlog.processors.JSONRenderer()
            if json
            else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)
        )

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", None) or {}
        event = getattr(record, "event", None)
        if event is None:
            event, fields = record.getMessage(), {"logger": record.name}
        at = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        shown = {**fields, "event": event, "level": record.levelname.lower(), "timestamp": at}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            shown["exception"] = record.exc_text
        return self._render(None, record.levelname.lower(), shown)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what standard error is by then."""

    def __init__(self, settings: LogSettings, *, is_alone: bool) -> None:
        logging.Handler.__init__(self)
        self.settings = settings
        self._is_alone = is_alone  # silent as soon as the program has handlers of its own
        self.setFormatter(_Rendered(settings.json))

    @property
    def stream(self) -> Any:
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> bool:
        return not (self._is_alone and logging.root.handlers) and bool(super().filter(record))


_ours: _Stderr | None = None


def configure(*, json: bool, level: str = "info") -> None:
    """Writes events to standard error: what the `holdfast` command does."""
    _LOGGER.setLevel(level_number(level))
    _install(_Stderr(LogSettings(json, level), is_alone=False))
    _LOGGER.propagate = False


def configure_embedded(*, json: bool, level: str) -> None:
    """For a node inside a program: its handlers and its level of `holdfast` come first."""
    number = level_number(level)
    if _ours is not None:
        return
    if _LOGGER.level == logging.NOTSET:
        _LOGGER.setLevel(number)
    _install(_Stderr(LogSettings(json, level), is_alone=True))


def join_program() -> None:
    """Beside a user's program that is imported by now: what it logs is written where we write.

    If it has set up logging itself, all that we log goes through its handlers.
    """
    assert _ours is not None, "the command has configured its logs"
    _LOGGER.removeHandler(_ours)
    _LOGGER.propagate = True
    if not logging.root.handlers:
        logging.root.addHandler(_ours)
        logging.root.setLevel(level_number(_ours.settings.level))


def command_settings() -> LogSettings | None:
    """How the `holdfast` command was told to log, for its child processes; None in a program."""
    return None if _ours is None or _ours._is_alone else _ours.settings


def level_number(level: str) -> int:
    """The number that the standard library has for a level."""
    number = LEVELS.get(level.lower())
    if number is None:
        raise InvalidArgument(
            f"Expected a log level among {', '.join(LEVELS)}, but found {level!r}",
            field="log_level",
        )
    return number


def _install(handler: _Stderr) -> None:
    global _ours
    if _ours is not None:
        _LOGGER.removeHandler(_ours)
        logging.root.removeHandler(_ours)
    _LOGGER.addHandler(handler)
    _ours = handler
