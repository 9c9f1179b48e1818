"""STOP and START REPLICA, CHANGE MASTER TO: the upstream side, for admin accounts.

The relay follows one source and has no applier. Whether the archive can continue with another source is found out when that is
started; the source that it has attached to is stored, except for a password, and the answer says so.
"""

from collections.abc import Mapping
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.statements import Done, Notice
from protocol.statements.requests import ChangeSource, ChangeValue, StartReplica, StopReplica, Thread
from protocol.statements.session.refusals import shown
from relay.admin.dialect import Dialect
from relay.admin.refusals import not_here
from relay.admin.surroundings import Source
from relay.upstream.control import SourceChange

_SQL_ONLY: Final = frozenset[Thread]({"SQL"})

# Options that say what the relay does anyway: option -> values that are taken. Any other value is refused.
_AS_IT_IS: Final[dict[str, tuple[ChangeValue, ...]]] = {
    # The position is found by GTID wherever that is possible.
    "SOURCE_AUTO_POSITION": (0, 1),
    "SOURCE_BIND": ("",),
    "SOURCE_DELAY": (0,),
    "SOURCE_USE_GTID": ("NO", "SLAVE_POS", "REPLICA_POS", "CURRENT_POS"),
    "SOURCE_DEMOTE_TO_SLAVE": (0,),
    "IGNORE_SERVER_IDS": ((),),
    "SOURCE_SSL_CAPATH": ("",),
    "SOURCE_SSL_CRL": ("",),
    "SOURCE_SSL_CRLPATH": ("",),
}
# Options that are taken and change nothing, which a notice says.
_WITHOUT_EFFECT: Final = frozenset(
    {"SOURCE_CONNECT_RETRY", "SOURCE_RETRY_COUNT", "GET_SOURCE_PUBLIC_KEY", "SOURCE_COMPRESSION_ALGORITHMS"}
)
_MOST_PORT: Final = 65535
_KEPT: Final = (
    "In force with START REPLICA, and kept once binlog-relay has attached to that source, while relay.toml lists it or lists "
    "the same sources as now"
)
_KEPT_WITH_PASSWORD: Final = f"{_KEPT}. The password is not kept: write it into relay.toml before the next start"


def check_channel(channel: str, dialect: Dialect) -> None:
    """Refuse a named channel: there is one, which has no name. Raises: StatementRefused."""
    if not channel:
        return
    if dialect.is_mariadb:
        raise StatementRefused(ErrorCode.WARN_NO_MASTER_INFO, f"There is no master connection '{shown(channel, 64)}'")
    word = dialect.replica_word.capitalize()
    raise StatementRefused(
        ErrorCode.ER_SLAVE_CHANNEL_DOES_NOT_EXIST, f"{word} channel '{shown(channel, 64)}' does not exist."
    )


async def stop_replica(source: Source, request: StopReplica, dialect: Dialect) -> Done:
    """End the stream; replicas are still served. Raises: StatementRefused."""
    check_channel(request.channel, dialect)
    if request.threads == _SQL_ONLY:
        raise not_here(
            "there is no SQL thread that could be stopped: what has arrived whole is served at once. "
            "STOP REPLICA IO_THREAD ends the stream from the source"
        )
    stopped = await source.stop()
    return Done(() if stopped else (_was(dialect, running=False),))


async def start_replica(source: Source, request: StartReplica, dialect: Dialect) -> Done:
    """Follow the source again, from the archive's end. Raises: StatementRefused."""
    check_channel(request.channel, dialect)
    if request.threads == _SQL_ONLY:
        return Done((_was(dialect, running=True),))
    started = await source.start()
    return Done(() if started else (_was(dialect, running=True),))


def _was(dialect: Dialect, *, running: bool) -> Notice:
    """Return the note of a statement that found nothing to do, as this server words it."""
    if dialect.is_mysql(5, 7):
        number = ErrorCode.ER_SLAVE_CHANNEL_WAS_RUNNING if running else ErrorCode.ER_SLAVE_CHANNEL_WAS_NOT_RUNNING
        state = "already running" if running else "already stopped"
        return Notice("Note", number, f"Replication thread(s) for channel '' are {state}.")
    if running:
        return Notice("Note", ErrorCode.ER_SLAVE_WAS_RUNNING, "Slave is already running")
    return Notice("Note", ErrorCode.ER_SLAVE_WAS_NOT_RUNNING, "Slave already has been stopped")


async def change_source(source: Source, request: ChangeSource, dialect: Dialect) -> Done:
    """Set another source, or another address, account or TLS for the same one. Raises: StatementRefused."""
    check_channel(request.channel, dialect)
    if source.running:
        raise _must_stop(dialect)
    change, ignored = source_change(request.options)
    try:
        await source.change(change)
    except StatementRefused as error:
        if error.number == ErrorCode.ER_SLAVE_MUST_STOP:
            raise _must_stop(dialect) from error
        raise
    notices = [Notice("Warning", ErrorCode.ER_UNKNOWN_ERROR, f"binlog-relay does not use {name}") for name in ignored]
    notices.append(
        Notice("Note", ErrorCode.ER_UNKNOWN_ERROR, _KEPT_WITH_PASSWORD if change.password is not None else _KEPT)
    )
    return Done(tuple(notices))


def _must_stop(dialect: Dialect) -> StatementRefused:
    if dialect.is_mariadb:
        text = "This operation cannot be performed as you have a running slave ''; run STOP SLAVE '' first"
        return StatementRefused(ErrorCode.ER_SLAVE_MUST_STOP, text)
    if dialect.is_mysql(5, 7):
        word = dialect.replica_word
        text = (
            f"This operation cannot be performed with a running {word} io thread; "
            f"run STOP {word.upper()} IO_THREAD FOR CHANNEL '' first."
        )
        return StatementRefused(ErrorCode.ER_SLAVE_CHANNEL_IO_THREAD_MUST_STOP, text)
    text = "This operation cannot be performed with a running slave; run STOP SLAVE first"
    return StatementRefused(ErrorCode.ER_SLAVE_MUST_STOP, text)


def source_change(options: Mapping[str, ChangeValue]) -> tuple[SourceChange, list[str]]:
    """Return the change that the options request, and those that have no effect. Raises: StatementRefused, naming the option."""
    left = dict(options)
    change = SourceChange(
        host=_text(left, "SOURCE_HOST"),
        port=_number(left, "SOURCE_PORT", _MOST_PORT),
        user=_text(left, "SOURCE_USER"),
        password=_text(left, "SOURCE_PASSWORD"),
        file=_text(left, "SOURCE_LOG_FILE"),
        position=_number(left, "SOURCE_LOG_POS", 1 << 63),
        ssl=_switch(left, "SOURCE_SSL"),
        ssl_ca=_text(left, "SOURCE_SSL_CA"),
        ssl_cert=_text(left, "SOURCE_SSL_CERT"),
        ssl_key=_text(left, "SOURCE_SSL_KEY"),
        public_key=_text(left, "SOURCE_PUBLIC_KEY_PATH"),
        ssl_verify_server_cert=_switch(left, "SOURCE_SSL_VERIFY_SERVER_CERT"),
        heartbeat_period_s=_seconds(left, "SOURCE_HEARTBEAT_PERIOD"),
    )
    ignored = []
    for name, value in left.items():
        if name in _WITHOUT_EFFECT:
            ignored.append(name)
        elif value not in _AS_IT_IS.get(name, ()):
            raise not_here(
                f"{name[:64]} cannot be set here; SOURCE_HOST, _PORT, _USER, _PASSWORD, _SSL and its files, "
                "_HEARTBEAT_PERIOD can, everything else is in relay.toml"
            )
    return change, ignored


def _wrong(name: str, expected: str) -> StatementRefused:
    return StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, f"Incorrect arguments to {name}: {expected} is expected")


def _text(left: dict[str, ChangeValue], name: str) -> str | None:
    value = left.pop(name, None)
    if value is None or (isinstance(value, str) and (name == "SOURCE_PASSWORD" or value.isprintable())):
        return value
    raise _wrong(name, "a text without control characters")


def _number(left: dict[str, ChangeValue], name: str, most: int) -> int | None:
    value = left.pop(name, None)
    if value is None:
        return None
    if isinstance(value, int) and 0 <= value <= most:
        return value
    raise _wrong(name, f"a number from 0 to {most}")


def _switch(left: dict[str, ChangeValue], name: str) -> bool | None:
    value = left.pop(name, None)
    if value is None:
        return None
    if value in (0, 1):
        return bool(value)
    raise _wrong(name, "0 or 1")


def _seconds(left: dict[str, ChangeValue], name: str) -> float | None:
    value = left.pop(name, None)
    if value is None:
        return None
    try:
        if isinstance(value, int | str):
            return float(value)
    except ValueError:
        pass
    raise _wrong(name, "a number of seconds")
