"""One question to a replica: who it is, and what it says of its channels. Only SHOW and SELECT, each in bounded time."""

from typing import Final

import pymysql.err

from relay.applying.replica_channel import ReplicaChannel, channel_of
from relay.config import ReplicaSection
from relay.upstream.source.connect_errors import server_text
from relay.upstream.source.connection import SourceAddress, SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls

LIMIT_S: Final = 5.0
"""The longest time that a replica has for all of it."""
_STATEMENTS: Final = {"mariadb": ("SHOW ALL SLAVES STATUS",), "mysql": ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")}
_PRIVILEGES: Final = {"mariadb": "SLAVE MONITOR", "mysql": "REPLICATION CLIENT"}


async def open_replica(section: ReplicaSection) -> SourceConnection:
    """Return a connection, which the caller closes. Raises: UpstreamError."""
    try:
        password = section.password_text()
    except (OSError, KeyError, UnicodeDecodeError) as error:
        text = f"the password for the replica {section.address} cannot be read: {error}"
        raise UpstreamError(FailureKind.AUTHENTICATION, text, "Check password_file of its [[replica]].") from error
    tls = SourceTls.of(section, "replica", "the replica")
    address = SourceAddress(section.host, section.port, section.user, password, LIMIT_S, tls)
    return await SourceConnection.open(address, needs_binlog=False)


async def ask_channels(connection: SourceConnection) -> list[ReplicaChannel]:
    """Return all channels of a replica; none: it follows nobody. Raises: UpstreamError."""
    flavour = connection.facts.flavour
    refusal: pymysql.err.MySQLError | None = None
    for statement in _STATEMENTS[flavour]:
        try:
            return [channel_of(row) for row in await connection.named_rows(statement)]
        except pymysql.err.MySQLError as error:
            refusal = error
        except (ValueError, TypeError, KeyError) as error:
            text = f"the replica answers {statement} with something that no server says: {type(error).__name__} {error}"
            raise UpstreamError(FailureKind.SETUP, text, "Check host and port of its [[replica]].") from error
    assert refusal is not None
    text = f"the replica refuses to say how far it is: {server_text(refusal)}"
    advice = f"There: GRANT {_PRIVILEGES[flavour]} ON *.* TO the account of its [[replica]]."
    raise UpstreamError(FailureKind.AUTHENTICATION, text, advice)
