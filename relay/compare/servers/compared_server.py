"""A connection to one of the two servers that are compared. It only reads."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

import pymysql
import pymysql.cursors

from protocol.errors import ErrorCode
from protocol.position import Position
from protocol.printable import printable
from protocol.show_columns import older_column
from relay.compare.servers.compare_stop import CompareStop, unreachable
from relay.config import ServerSource
from relay.doctor.server_answers import privileges_in
from relay.upstream.blocking.blocking_login import BROKEN, BlockingLogin
from relay.upstream.source.answer_bound import ROWS
from relay.upstream.source.connect_errors import server_text
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_tls import SourceTls

_SHOWN_CHARACTERS: Final = 80
_SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = ''",
    "SET SESSION sql_quote_show_create = 1, wait_timeout = 604800, net_write_timeout = 3600",
    "SET SESSION TRANSACTION READ ONLY",
)
_SESSION_OF_SOME: Final = (
    "SET SESSION information_schema_stats_expiry = 0",  # else AUTO_INCREMENT is that of yesterday
    "SET SESSION max_execution_time = 0",
    "SET SESSION max_statement_time = 0",
)
_NEEDED: Final = ("SELECT", "REPLICATION CLIENT", "TRIGGER", "EVENT", "SHOW VIEW")
_NAMED_OTHERWISE: Final = {"REPLICATION CLIENT": ("BINLOG MONITOR", "SUPER")}
_OF_MARIADB_REPLICA: Final = ("SLAVE MONITOR", "REPLICA MONITOR", "SUPER", "REPLICATION SLAVE ADMIN")


class ComparedServer:
    """A session that changes nothing: its transactions are READ ONLY. `who` is how messages call the server."""

    def __init__(self, settings: ServerSource, option: str, who: str) -> None:
        """Log in. `option` is where the account was given. Raises: CompareStop."""
        self.settings, self.option, self.who = settings, option, who
        self.where = f"{settings.host}:{settings.port}"
        try:
            password = settings.password_text()
        except (OSError, KeyError) as error:
            raise CompareStop(
                f"The password of {who} cannot be read: {error}", f"Correct the file in {option}."
            ) from None
        try:
            self._connection = BlockingLogin(
                where=self.where,
                tls=SourceTls.of(settings, option, who),
                password=password,
                host=settings.host,
                port=settings.port,
                user=settings.user,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=int(settings.connect_timeout_s) or 1,
                read_timeout=3600,
            )
        except UpstreamError as error:
            raise unreachable(f"{who} {self.where}: {error.what}", error.advice) from None
        except pymysql.err.MySQLError as error:
            text = f"{who} {self.where} refuses {settings.user!r}: {server_text(error)}"
            raise unreachable(text, f"Check host, account and password in {option}.") from None
        except BROKEN as error:
            text = f"{who} {self.where} answers with what cannot be: {type(error).__name__}"
            raise unreachable(text, f"No MySQL or MariaDB does: check host and port in {option}.") from None
        for statement in _SESSION:
            self.rows(statement)
        for statement in _SESSION_OF_SOME:
            self.rows_or_none(statement)
        ((version,),) = self.rows("SELECT VERSION()")
        self.version = str(version)
        self.is_mariadb = "mariadb" in self.version.lower()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(pymysql.err.Error):
            self._connection.close()

    def again(self) -> "ComparedServer":
        """Return a second session of the same account."""
        return ComparedServer(self.settings, self.option, self.who)

    # --- questions ---------------------------------------------------------------------------------------------------

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the answer. Raises: CompareStop."""
        with self._asked(statement), self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def each_row(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield the answer as it comes. Raises: CompareStop."""
        with self._asked(statement), self._connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(statement)
            yield from iter(cursor.fetchone, None)

    def unwarned(self, statement: str) -> tuple[Any, ...]:
        """Return the one row of a checksum. Raises: CompareStop, also where a row did not fit into max_allowed_packet."""
        with self._asked(statement), self._connection.cursor() as cursor:
            cursor.execute(statement)
            row: tuple[Any, ...] = cursor.fetchone()
            warned = bool(cursor.warning_count)
        if warned:
            for _level, number, text in self.rows("SHOW WARNINGS"):
                if number == ErrorCode.ER_WARN_ALLOWED_PACKET_OVERFLOWED:
                    advice = (
                        "Raise max_allowed_packet there: SET GLOBAL max_allowed_packet = 1073741824; and run it again."
                    )
                    raise unreachable(f"{self.who} {self.where}: {text}", advice)
        return row

    def rows_or_none(self, statement: str) -> list[tuple[Any, ...]] | None:
        """Return the answer; None: the server does not know the statement, or refuses it."""
        with self._asked(statement):
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute(statement)
                    return list(cursor.fetchall())
            except (pymysql.err.ProgrammingError, pymysql.err.OperationalError, pymysql.err.InternalError) as error:
                if error.args[0] in (2006, 2013):
                    raise
                return None

    def named_row(self, *statements: str) -> dict[str, Any] | None:
        """Return the first row of the first statement that the server knows, by its columns' names; {}: it has none. None: it knows
        none of them."""
        for statement in statements:
            with self._asked(statement), self._connection.cursor(pymysql.cursors.DictCursor) as cursor:
                try:
                    cursor.execute(statement)
                except (pymysql.err.ProgrammingError, pymysql.err.OperationalError) as error:
                    if error.args[0] in (2006, 2013):
                        raise
                    continue
                return dict(cursor.fetchone() or {})
        return None

    @contextlib.contextmanager
    def _asked(self, statement: str) -> Iterator[None]:
        shown = printable(statement[:_SHOWN_CHARACTERS])
        self._connection.asks(repr(shown), ROWS)
        try:
            yield
        except pymysql.err.MySQLError as error:
            text = f"{self.who} {self.where} said to {shown!r}…: {server_text(error)}"
            advice = "Correct what it says, and run it again; with --state it goes on where it was."
            raise unreachable(text, advice) from None
        except UpstreamError as error:
            self._connection.give_up()
            raise unreachable(f"{self.who}: {error.what}", error.advice) from None
        except BROKEN as error:
            self._connection.give_up()
            text = f"{self.who} {self.where} answered {shown!r}… with what cannot be: {type(error).__name__}"
            raise unreachable(text, f"Check host and port in {self.option}.") from None

    # --- facts -------------------------------------------------------------------------------------------------------

    def identity(self) -> tuple[Any, ...]:
        """Return what no two servers have in common."""
        (row,) = self.rows("SELECT @@hostname, @@port, @@datadir, @@server_id")
        return row

    def server_id(self) -> int:
        """Return its server_id."""
        return int(self.rows("SELECT @@server_id")[0][0])

    def end(self) -> Position:
        """Return the end of the newest binlog. Raises: CompareStop."""
        row = self.named_row("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
        if not row:
            raise CompareStop(
                f"{self.who} {self.where} tells no place in a binlog: it writes none, or the account lacks REPLICATION CLIENT",
                "Name the source that the relay follows, with the account that --help describes.",
            )
        return Position(str(row["File"]), int(row["Position"]))

    def replica_status(self) -> dict[str, Any]:
        """Return SHOW REPLICA STATUS by the older names of its columns; {}: it is no replica. Raises: CompareStop."""
        row = self.named_row("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
        if row is None:
            raise self._lacking(("SLAVE MONITOR",) if self.is_mariadb else ("REPLICATION CLIENT",))
        return {older_column(name): value for name, value in row.items()}

    def check_privileges(self) -> None:
        """Raise CompareStop if the account may not see all tables and programs: those would seem to be missing."""
        rows = self.rows("SHOW GRANTS")
        active = None if self.is_mariadb else self.rows_or_none("SELECT CURRENT_ROLE()")
        if active and active[0][0] and str(active[0][0]).upper() != "NONE":
            rows += self.rows_or_none(f"SHOW GRANTS FOR CURRENT_USER() USING {active[0][0]}") or []
        held = privileges_in(str(row[0]) for row in rows)
        if "ALL PRIVILEGES" in held:
            return
        lacking = [one for one in _NEEDED if one not in held and not held.intersection(_NAMED_OTHERWISE.get(one, ()))]
        if lacking:
            raise self._lacking(lacking)

    def _lacking(self, privileges: Sequence[str]) -> CompareStop:
        return CompareStop(
            f"{self.who} {self.where}: account {self.settings.user!r} lacks {', '.join(privileges)} on *.*",
            f"There, as an administrator: GRANT {', '.join(privileges)} ON *.* TO '{self.settings.user}'@'HOST';",
        )
