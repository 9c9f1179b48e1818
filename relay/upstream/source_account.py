"""The account at the source when relay.toml is reread while the relay runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relay.config import ServerSource
from relay.upstream.chosen_source import address, with_address

ACCOUNT_KEYS: Final = ("user", "password", "password_file", "password_env", "password_credential")
"""These keys of a source may change under a running relay: the account that enters it, but never the source itself."""


@dataclass(frozen=True, slots=True)
class AccountsTaken:
    """The result. `candidates` are the sources as they were, with the current accounts, and `followed` is the followed one, likewise.

    `changed` are the addresses (host:port) whose account differs from before. `kept` says why the followed one keeps another account
    than relay.toml has; None if it has that.
    """

    candidates: tuple[ServerSource, ...]
    followed: ServerSource
    changed: tuple[str, ...]
    kept: str | None


def take_accounts(
    candidates: Sequence[ServerSource], followed: ServerSource, configured: Sequence[ServerSource]
) -> AccountsTaken:
    """Return the sources with the accounts of `configured`, which is relay.toml now; `candidates` (at least one) are those that were
    read before."""
    renewed = tuple(_with_account_of(one, configured) for one in candidates)
    origin = with_address(candidates, followed.host, followed.port)
    entered = followed
    kept = None
    if _account(origin) == _account(followed):
        # An address that relay.toml does not name has the first source's account.
        entered = followed.model_copy(update=_account(with_address(renewed, followed.host, followed.port)))
    else:
        kept = f"{address(followed)} has an account of its own, set by CHANGE MASTER TO"
    changed = [address(new) for old, new in zip(candidates, renewed, strict=True) if old != new]
    if entered != followed and address(followed) not in changed:
        changed.append(address(followed))
    return AccountsTaken(renewed, entered, tuple(changed), kept)


def _with_account_of(source: ServerSource, configured: Sequence[ServerSource]) -> ServerSource:
    """Return the source with the account that its address has now; unchanged if it is no longer named."""
    for one in configured:
        if address(one).lower() == address(source).lower():
            return source.model_copy(update=_account(one))
    return source


def _account(source: ServerSource) -> dict[str, object]:
    return {key: getattr(source, key) for key in ACCOUNT_KEYS}
