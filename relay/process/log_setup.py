"""Logs: structlog to stderr, key=value lines on a terminal, JSON lines elsewhere, times in UTC, secrets masked.

Warnings and errors name the place of their explanation.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

from protocol.printable import printable

_SECRET_PARTS: Final = ("password", "passwd", "secret", "hash", "scramble", "token", "auth_response")
MASK: Final = "********"
# A client may send anything as a statement, CHANGE MASTER TO with its password included.
_SECRET_WORDS: Final = re.compile(r"passw|identified|secret", re.IGNORECASE)
_LITERALS: Final = re.compile(r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?""", re.DOTALL)
_OF_FAULTS: Final = ("exception", "stack")
"""Keys whose values have lines of their own."""
_MOST_BYTES: Final = 8 << 10
"""The limit for one text. Texts that others supply have narrower bounds where they are taken."""

PAGE: Final = "docs/ERRORS.md"
"""The page that explains everything that the relay logs."""
_EXPLAINED: Final = ("warning", "error", "critical")
# Lines about a thing with a name of its own, which is more specific than the line's: the part of the page, the name's key.
_NAMED: Final = {
    "archive_ledger": ("ledger", "kind"),
    "archive_recovery_finding": ("ledger", "kind"),
    "source_given_up": ("source", "trouble"),
    "source_lost": ("source", "trouble"),
}


def mask_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the value of every key that names a secret, at any depth of nested mappings.

    In the value of `statement` the texts in quotes are replaced where the statement speaks of passwords.
    """
    for key, value in event.items():
        if key != "event" and any(part in key.lower() for part in _SECRET_PARTS):
            event[key] = MASK
        elif key == "statement" and isinstance(value, str) and _SECRET_WORDS.search(value):
            event[key] = _LITERALS.sub(f"'{MASK}'", value)
        elif isinstance(value, dict):
            event[key] = mask_secrets(_logger, _method, dict(value))
    return event


def make_printable(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Make every text of a line printable, wherever it came from: one line without terminal control characters; tracebacks keep their
    lines, indented."""
    for key, value in event.items():
        if key in _OF_FAULTS and isinstance(value, str):
            event[key] = "\n    ".join(printable(line, _MOST_BYTES) for line in value.split("\n"))
        else:
            event[key] = _printable(value)
    return event


def _printable(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {_printable(key): _printable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(one) for one in value]
    return printable(str(value).replace("\n", " "), _MOST_BYTES)


def point_to_page(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add `see`, the place where a warning or an error is explained. The line must have `level`."""
    if event.get("level") in _EXPLAINED:
        part, key = _NAMED.get(str(event["event"]), ("log", "event"))
        event["see"] = f"{PAGE}#{part}-{event.get(key)}"
    return event


def setup_logging(level: str = "info", *, stream: TextIO | None = None, as_json: bool | None = None) -> None:
    """Configure structlog for the process; standard library loggers end up in the same stream.

    `as_json` None: JSON unless `stream` (default stderr) is a terminal.
    """
    target = sys.stderr if stream is None else stream
    if as_json is None:
        as_json = not target.isatty()
    threshold = logging.getLevelNamesMapping()[level.upper()]
    renderer: Any
    if as_json:
        renderer = structlog.processors.JSONRenderer(default=str)
    else:
        renderer = structlog.processors.KeyValueRenderer(
            key_order=["timestamp", "level", "event"], drop_missing=True, repr_native_str=False
        )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        mask_secrets,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        make_printable,
    ]
    structlog.configure(
        processors=[*shared, point_to_page, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # Libraries log at warning and above only: below that they log what they send, statements included.
    root.setLevel(max(threshold, logging.WARNING))
