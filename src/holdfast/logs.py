"""Structured logs. The only module that imports structlog."""

import logging
import sys
from typing import Any

import structlog

log: Any = structlog.get_logger("holdfast")


def configure(*, json: bool, level: str = "info") -> None:
    """Writes to standard error, as JSON lines for machines or in colour for people."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # whatever it is by then
    )


def configure_unless_done(*, json: bool, level: str) -> None:
    """Like `configure`, for a node inside a program that may have its own way with structlog."""
    if not structlog.is_configured():
        configure(json=json, level=level)
