"""The token that requests must show."""

import hashlib
import hmac
from typing import Final

_SCHEME: Final = "bearer "


class BearerToken:
    """token: the text in clear; None: every request is let in. Only its digest is kept."""

    def __init__(self, token: str | None) -> None:
        self._digest = _digest(token) if token is not None else None

    @property
    def is_needed(self) -> bool:
        """True if a request must show a token."""
        return self._digest is not None

    def lets_in(self, authorization: str | None) -> bool:
        """Return whether a request with this header is answered. It takes as long for one wrong token as for another."""
        if self._digest is None:
            return True
        if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        return hmac.compare_digest(_digest(authorization[len(_SCHEME) :].strip()), self._digest)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
