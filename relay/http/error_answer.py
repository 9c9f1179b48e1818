"""The answer of HTTP to a request that gets an error: the error as JSON, and the headers that belong to its status."""

import json
from typing import Any, Final

from aiohttp import web

from protocol.errors import RelayError
from relay.http.query_parameters import Unanswerable

_HEADERS: Final = {401: {"WWW-Authenticate": "Bearer"}, 405: {"Allow": "GET, HEAD"}}
_CLOSING: Final = frozenset((401, 405, 413, 421))
"""The statuses after which the connection is closed."""


def encoded_json(answer: Any) -> bytes:
    """Return the answer as JSON in ASCII. <, > and & are escapes: names of files and accounts may contain anything, and no reader
    takes them for markup.
    """
    text = json.dumps(answer, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode("ascii")


def error_json(error: RelayError, code: str) -> dict[str, object]:
    """Return an error as JSON. `text` is all of it for people; `file`, `offset` and `advice` are its parts, or null."""
    return {
        "code": code,
        "text": str(error).removesuffix("."),
        "file": error.file,
        "offset": error.offset,
        "advice": error.advice or None,
    }


def error_answer(error: Unanswerable) -> web.Response:
    """Return the response for an error."""
    response = web.Response(
        status=error.status,
        body=encoded_json({"error": error_json(error, error.code)}),
        content_type="application/json",
        charset="utf-8",
        headers=_HEADERS.get(error.status),
    )
    if error.status in _CLOSING:
        response.force_close()
    return response
