"""What the log says of a statement that changes something: no password, and nothing that was left out of the statement."""

from dataclasses import MISSING, fields
from typing import Final

from protocol.statements import Request
from protocol.statements.requests import ChangeSource

# All others may lead to a secret, or be one.
_SHOWN_OPTIONS: Final = frozenset({"SOURCE_HOST", "SOURCE_PORT", "SOURCE_USER", "SOURCE_LOG_FILE", "SOURCE_LOG_POS"})


def request_text(request: Request) -> str:
    """Its kind and what it names: `ChangeSource(SOURCE_HOST='db2', SOURCE_PASSWORD)`. Of most options the name only."""
    named = []
    for item in fields(request):
        value = getattr(request, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.repr and item.name != "words" and value != default:
            shown = ", ".join(sorted(map(str, value))) if isinstance(value, frozenset) else repr(value)
            named.append(f"{item.name}={shown}")
    if isinstance(request, ChangeSource):
        for name, option in request.options.items():
            named.append(f"{name}={option!r}" if name in _SHOWN_OPTIONS else name)
    return f"{type(request).__name__}({', '.join(named)})"
