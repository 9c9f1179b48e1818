"""A connection to the source as relay.toml describes it, logged in."""

import asyncio

from relay.config import ServerSource
from relay.upstream.source.connection import SourceAddress, SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls


async def open_source(
    settings: ServerSource, *, needs_binlog: bool = True, section: str = "source", who: str = "the source"
) -> SourceConnection:
    """Return a connection, which the caller closes. With `needs_binlog` a server that writes none is refused. `section` and `who` are
    as in `SourceTls`.

    Raises: UpstreamError.
    """
    address = SourceAddress(
        settings.host,
        settings.port,
        settings.user,
        await asyncio.to_thread(_password, settings),
        settings.connect_timeout_s,
        SourceTls.of(settings, section, who),
    )
    return await SourceConnection.open(address, needs_binlog=needs_binlog)


def _password(settings: ServerSource) -> str:
    try:
        return settings.password_text()
    except (OSError, KeyError) as error:
        text = f"the source's password cannot be read: {error}"
        raise UpstreamError(
            FailureKind.AUTHENTICATION, text, "Check source.password_file, password_env or password_credential."
        ) from error
