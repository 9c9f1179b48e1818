"""The answers of a running relay about itself, at its own SQL port, to an account of relay.toml."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql.err

from protocol.auth.host_pattern import HostPattern, plain_address
from protocol.errors import ErrorCode
from relay.config import Account, Config
from relay.upstream.source.connection import SourceAddress, SourceConnection
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_tls import SourceTls

_LIMIT_S: Final = 5.0
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
# Places in the row of SHOW SLAVE STATUS.
_COLUMNS: Final = {
    "state": 0,
    "host": 1,
    "port": 3,
    "file": 5,
    "position": 6,
    "receives": 10,
    "publishes": 11,
    "publish_error": 19,
    "seconds_behind": 32,
    "receive_error": 35,
}


@dataclass(frozen=True, slots=True)
class DumpTo:
    """A replica or reader that is receiving binlogs. place: FILE:OFFSET, or empty."""

    user: str
    address: str
    state: str
    place: str


@dataclass(frozen=True, slots=True)
class RelayAnswers:
    """asked_as: the user; None: there was no account to ask, and `why`. sees_all: whether `replicas` are all of them, not this
    user's."""

    asked_as: str | None = None
    why: str | None = None
    refused: bool = False
    sees_all: bool = False
    source: dict[str, Any] = field(default_factory=dict)
    replicas: tuple[DumpTo, ...] = ()


async def ask_relay(config: Config) -> RelayAnswers:
    """Ask a relay, in bounded time. It never raises for a relay that does not answer."""
    host = _ANY.get(config.listen.host, config.listen.host)
    account = asking_account(config, host)
    if account is None:
        text = f"no account of relay.toml has its password there, no view, and may come from {host}"
        return RelayAnswers(why=text, refused=True)
    try:
        password = account.password_text() or ""
    except (OSError, KeyError) as error:
        return RelayAnswers(why=f"the password of {account.user!r} cannot be read: {error}", refused=True)
    address = SourceAddress(host, config.listen.port, account.user, password, _LIMIT_S, _relay_tls(config))
    try:
        async with asyncio.timeout(_LIMIT_S):
            connection = await SourceConnection.open(address, needs_binlog=False)
            try:
                return await _answers(connection, account)
            finally:
                connection.close()
    except TimeoutError:
        return RelayAnswers(why=f"no answer from {host}:{config.listen.port} within {_LIMIT_S:g} s")
    except UpstreamError as error:
        return RelayAnswers(why=error.what, refused=error.number == ErrorCode.ER_ACCESS_DENIED_ERROR)
    except pymysql.err.MySQLError as error:
        return RelayAnswers(why=str(error))


def _relay_tls(config: Config) -> SourceTls:
    """Return the TLS settings: a server with the certificate of relay.toml is the relay; one without a certificate offers no TLS."""
    certificate = config.listen.tls_cert
    mode = "disabled" if certificate is None else "verify_ca"
    return SourceTls(mode, ca=certificate, section="listen", who="the relay")


def asking_account(config: Config, address: str) -> Account | None:
    """Return an account whose password is known here and that sees the mirror; an admin's if there is one: it sees all replicas."""
    peer = plain_address(address)
    fit = [
        account
        for account in config.accounts
        if account.password_hash is None
        and account.view is None
        and not account.require_client_cert
        and HostPattern.parse(account.host).matches(peer)
    ]
    return next((account for account in fit if account.admin), fit[0] if fit else None)


async def _answers(connection: SourceConnection, account: Account) -> RelayAnswers:
    rows: list[tuple[Any, ...]] = []
    for statement in ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        try:
            rows = await connection.query(statement)
            break
        except pymysql.err.MySQLError:
            continue
    source = {name: rows[0][at] for name, at in _COLUMNS.items() if len(rows[0]) > at} if rows else {}
    dumps = [
        DumpTo(str(row[1]), str(row[2]), str(row[6] or ""), str(row[7] or "").split(",")[0])
        for row in await connection.query("SHOW FULL PROCESSLIST")
        if str(row[4]).startswith("Binlog Dump")
    ]
    return RelayAnswers(asked_as=account.user, sees_all=account.admin, source=source, replicas=tuple(dumps))
