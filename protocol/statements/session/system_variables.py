"""The system variables that can be read, and those that can be set.

The versions that have a variable, its scope and its kind of value are those of MySQL 5.6.24, MySQL 9.7.4 and MariaDB 10.11.18, as
they answered; versions between them are from their references.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from protocol.charsets import NAMED_COLLATIONS
from protocol.errors import ErrorCode, StatementRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.resultset import Value
from protocol.statements.session import values
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.refusals import shown, unknown_variable
from protocol.statements.session.session import StatementSession, default_collation, has_collation
from protocol.statements.session.source_settings import of_source
from protocol.statements.session.values import Typed

Version = tuple[int, ...]


class Versions(NamedTuple):
    """The first version that has a variable, and the first that no longer does."""

    since: Version = (0,)
    before: Version | None = None

    def include(self, version: Version) -> bool:
        """Return whether this version has the variable."""
        return version >= self.since and (self.before is None or version < self.before)


_ALL: Final = Versions()
# The steps for writing a source's GTIDs, of which there may be a million.
_STEPS_A_GTID: Final = 15
_STEPS_A_SERVER: Final = 40
_STEPS_AN_INTERVAL: Final = 5
Scope = Literal["both", "global", "session"]


@dataclass(frozen=True, slots=True)
class SystemVariable:
    """A variable that can be read. `mysql` and `mariadb` are the versions that have it, None: none has. A bool is ON or OFF.

    If `can_be_set`, SET SESSION stores a value that is only read back. `is_real`: its text is a floating-point number.
    """

    value: Callable[[StatementSession], Value]
    scope: Scope = "both"
    mysql: Versions | None = _ALL
    mariadb: Versions | None = _ALL
    offered: Callable[[SourceFacts], bool] = lambda facts: True
    is_real: bool = False

    @property
    def can_be_set(self) -> bool:
        """True if a session may have a value of its own."""
        return self.scope != "global"

    def exists(self, facts: SourceFacts) -> bool:
        """Return whether a source of this flavour and version has it."""
        versions = self.mariadb if facts.is_mariadb else self.mysql
        return versions is not None and versions.include(facts.version_numbers) and self.offered(facts)


def _always(value: Value) -> Callable[[StatementSession], Value]:
    return lambda session: value


def _charset(session: StatementSession) -> Value:
    name = session.encoding.charset.name
    return "utf8mb3" if name == "utf8" and session.facts.says_utf8mb3 else name


def _collation(session: StatementSession) -> Value:
    charset, chosen = session.encoding.charset.name, session.encoding.collation
    if chosen not in (session.encoding.charset.collation, default_collation(session.encoding.charset, session.facts)):
        known = [
            name for name, number in NAMED_COLLATIONS.items() if number == chosen and has_collation(name, session.facts)
        ]
        if known:
            return known[0]
    names = {"utf8": "utf8_general_ci", "latin1": "latin1_swedish_ci", "binary": "binary"}
    name = names.get(charset, f"{charset}_general_ci")
    if charset == "utf8mb4" and session.facts.is_mysql_8:
        return "utf8mb4_0900_ai_ci"
    if session.facts.has_uca1400 and charset.startswith("utf8"):
        name = f"{charset}_uca1400_ai_ci"
    return name.replace("utf8_", "utf8mb3_") if session.facts.says_utf8mb3 else name


def _server_charset(session: StatementSession) -> Value:
    return "utf8mb4" if session.facts.is_mysql_8 or _serves_utf8mb4(session.facts) else "latin1"


def _server_collation(session: StatementSession) -> Value:
    if _serves_utf8mb4(session.facts):
        return "utf8mb4_uca1400_ai_ci"
    return "utf8mb4_0900_ai_ci" if session.facts.is_mysql_8 else "latin1_swedish_ci"


def _serves_utf8mb4(facts: SourceFacts) -> bool:
    return facts.is_mariadb and facts.version_numbers >= (11, 6)


def _binlog_format(session: StatementSession) -> Value:
    if session.facts.is_mariadb:
        return "MIXED"
    return "ROW" if session.facts.version_numbers >= (5, 7, 7) else "STATEMENT"


def _row_metadata(session: StatementSession) -> Value:
    return "NO_LOG" if session.facts.is_mariadb else "MINIMAL"


def _checksum(session: StatementSession) -> Value:
    return session.facts.checksum


def _gtid_binlog_pos(session: StatementSession) -> Value:
    state = session.facts.gtids().binlog_state
    session.effort.spend(_STEPS_A_GTID * len(state))
    return str(state.position)


def _gtid_binlog_state(session: StatementSession) -> Value:
    state = session.facts.gtids().binlog_state
    session.effort.spend(_STEPS_A_GTID * len(state))
    return str(state)


def _simple_recovery(session: StatementSession) -> Value:
    return session.facts.version_numbers >= (5, 7, 7)


def _compression_period(session: StatementSession) -> Value:
    return 0 if session.facts.version_numbers >= (8, 0, 23) else 1000


def _gtid_domain_id(session: StatementSession) -> Value:
    return session.facts.gtids().domain_id


def _gtid_strict_mode(session: StatementSession) -> Value:
    return session.facts.gtids().strict_mode


def _gtid_executed(session: StatementSession) -> Value:
    return _set_text(session.facts.gtids().executed, session)


def _gtid_purged(session: StatementSession) -> Value:
    return _set_text(session.facts.gtids().purged, session)


def _set_text(gtids: GtidSet, session: StatementSession) -> str:
    session.effort.spend(_STEPS_A_SERVER * len(gtids.intervals_by_key()))
    session.effort.spend(_STEPS_AN_INTERVAL * gtids.interval_count)
    return str(gtids)


def _enforce_gtid_consistency(session: StatementSession) -> Value:
    is_on = session.facts.gtid_mode.startswith("ON")
    return is_on if session.facts.version_numbers < (5, 7, 6) else "ON" if is_on else "OFF"


def _plain_version(session: StatementSession) -> Value:
    return ".".join(str(number) for number in session.facts.version_numbers)


def _binlog_path(ending: str) -> Callable[[StatementSession], Value]:
    return lambda session: f"{session.facts.data_directory.rstrip('/')}/{session.facts.binlog_base_name}{ending}"


_NEW: Final = Versions(since=(8, 0, 26))


def _semi_sync(facts: SourceFacts) -> bool:
    # A replica learns from "No such variable" that it gets no semi-sync; OFF would still change the framing.
    return facts.semi_sync


# rpl_semi_sync_*: whatever generation the source is of, a replica asks for the name of its own: MySQL 9 only for the second, MySQL
# before 8.0.26 and MariaDB for the first.
# fmt: off
SYSTEM_VARIABLES: Final[dict[str, SystemVariable]] = {
    "auto_increment_increment":  SystemVariable(_always(1)),
    "auto_increment_offset":     SystemVariable(_always(1)),
    "autocommit":                SystemVariable(_always(True)),
    "binlog_annotate_row_events": SystemVariable(of_source("binlog_annotate_row_events", _always(True)), mysql=None,
                                                mariadb=Versions((5, 3))),
    "binlog_checksum":           SystemVariable(_checksum, "global", Versions((5, 6, 2)), Versions((5, 3))),
    "binlog_expire_logs_seconds": SystemVariable(_always(0), "global", Versions((8, 0, 1)), Versions((10, 6, 1))),
    "binlog_format":             SystemVariable(of_source("binlog_format", _binlog_format)),
    "binlog_gtid_simple_recovery": SystemVariable(_simple_recovery, "global", Versions((5, 6, 23)), None),
    "binlog_row_image":          SystemVariable(of_source("binlog_row_image", _always("FULL")), "both", Versions((5, 6, 2)),
                                                Versions((10, 1, 6))),
    "binlog_row_metadata":       SystemVariable(of_source("binlog_row_metadata", _row_metadata), "global", Versions((8, 0, 1)),
                                                Versions((10, 5))),
    "binlog_row_value_options":  SystemVariable(of_source("binlog_row_value_options", _always("")), "both", Versions((8, 0, 3)), None),
    "binlog_rows_query_log_events": SystemVariable(of_source("binlog_rows_query_log_events", _always(False)), "both",
                                                   Versions((5, 6, 2)), None),
    "binlog_transaction_compression": SystemVariable(of_source("binlog_transaction_compression", _always(False)), "both",
                                                     Versions((8, 0, 20)), None),
    "character_set_client":      SystemVariable(_charset),
    "character_set_connection":  SystemVariable(_charset),
    "character_set_database":    SystemVariable(of_source("character_set_server", _server_charset)),
    "character_set_results":     SystemVariable(_charset),
    "character_set_server":      SystemVariable(of_source("character_set_server", _server_charset)),
    "character_set_system":      SystemVariable(lambda session: "utf8mb3" if session.facts.says_utf8mb3 else "utf8", "global"),
    "collation_connection":      SystemVariable(_collation),
    "collation_database":        SystemVariable(of_source("collation_server", _server_collation)),
    "collation_server":          SystemVariable(of_source("collation_server", _server_collation)),
    "connect_timeout":           SystemVariable(_always(10), "global"),
    "datadir":                   SystemVariable(lambda session: session.facts.data_directory.rstrip("/") + "/", "global"),
    "default_storage_engine":    SystemVariable(_always("InnoDB")),
    "enforce_gtid_consistency":  SystemVariable(_enforce_gtid_consistency, "global", Versions((5, 6, 9)), None),
    "error_count":               SystemVariable(lambda session: session.error_count, "session"),
    "event_scheduler":           SystemVariable(_always("OFF"), "global"),
    "expire_logs_days":          SystemVariable(_always(0), "global", Versions(before=(8, 4)), Versions(before=(10, 6, 1))),
    "foreign_key_checks":        SystemVariable(_always(True)),
    "group_concat_max_len":      SystemVariable(lambda session: 1048576 if session.facts.is_mariadb else 1024),
    "gtid_binlog_pos":           SystemVariable(_gtid_binlog_pos, "global", None, Versions((10, 0, 3))),
    "gtid_binlog_state":         SystemVariable(_gtid_binlog_state, "global", None, Versions((10, 0, 5))),
    "gtid_current_pos":          SystemVariable(_gtid_binlog_pos, "global", None, Versions((10, 0, 3))),
    "gtid_cleanup_batch_size":   SystemVariable(_always(64), "global", None, Versions((10, 4, 1))),
    "gtid_domain_id":            SystemVariable(_gtid_domain_id, "both", None, Versions((10, 0, 2))),
    "gtid_executed":             SystemVariable(_gtid_executed, "global", Versions((5, 6, 9)), None),
    "gtid_executed_compression_period": SystemVariable(_compression_period, "global", Versions((5, 7, 5)), None),
    "gtid_ignore_duplicates":    SystemVariable(_always(False), "global", None, Versions((10, 0, 8))),
    "gtid_mode":                 SystemVariable(lambda session: session.facts.gtid_mode, "global", Versions((5, 6, 5)), None),
    "gtid_next":                 SystemVariable(_always("AUTOMATIC"), "session", Versions((5, 6, 5)), None),
    "gtid_owned":                SystemVariable(_always(""), "both", Versions((5, 6, 5)), None),
    "gtid_pos_auto_engines":     SystemVariable(_always(""), "global", None, Versions((10, 3, 1))),
    "gtid_purged":               SystemVariable(_gtid_purged, "global", Versions((5, 6, 9)), None),
    "gtid_seq_no":               SystemVariable(_always(0), "session", None, Versions((10, 0, 2))),
    "gtid_slave_pos":            SystemVariable(_always(""), "global", None, Versions((10, 0, 3))),
    "gtid_strict_mode":          SystemVariable(_gtid_strict_mode, "global", None, Versions((10, 0, 3))),
    "hostname":                  SystemVariable(lambda session: session.facts.hostname, "global"),
    "init_connect":              SystemVariable(_always(""), "global"),
    "innodb_read_only":          SystemVariable(_always(False), "global", Versions((5, 6, 7)), Versions((10, 0))),
    "innodb_version":            SystemVariable(_plain_version, "global", Versions((5, 5)), None),
    "interactive_timeout":       SystemVariable(_always(28800)),
    "last_gtid":                 SystemVariable(_always(""), "session", None, Versions((10, 0, 2))),
    "last_insert_id":            SystemVariable(_always(0), "session"),
    "lc_time_names":             SystemVariable(_always("en_US")),
    "license":                   SystemVariable(_always("AGPL"), "global"),
    "lock_wait_timeout":         SystemVariable(lambda session: 86400 if session.facts.is_mariadb else 31536000),
    "log_bin":                   SystemVariable(_always(True), "global"),
    "log_bin_basename":          SystemVariable(_binlog_path(""), "global", Versions((5, 6, 2)), Versions((10, 1, 6))),
    "log_bin_compress":          SystemVariable(of_source("log_bin_compress", _always(False)), "global", None, Versions((10, 2, 3))),
    "log_bin_index":             SystemVariable(_binlog_path(".index"), "global", Versions((5, 6, 4)), Versions((10, 1, 6))),
    "log_replica_updates":       SystemVariable(_always(True), "global", _NEW, None),
    "log_slave_updates":         SystemVariable(_always(True), "global"),
    "long_query_time":           SystemVariable(_always("10.000000"), is_real=True),
    "lower_case_table_names":    SystemVariable(of_source("lower_case_table_names", _always(0)), "global"),
    "master_info_repository":    SystemVariable(_always("FILE"), "global", Versions((5, 6, 2), (8, 3)), None),
    "max_allowed_packet":        SystemVariable(_always(1073741824)),
    "max_binlog_size":           SystemVariable(of_source("max_binlog_size", _always(1073741824)), "global"),
    "max_connections":           SystemVariable(lambda session: session.facts.max_connections, "global"),
    "net_buffer_length":         SystemVariable(_always(16384)),
    "net_read_timeout":          SystemVariable(_always(30)),
    "net_write_timeout":         SystemVariable(_always(60)),
    "performance_schema":        SystemVariable(_always(False), "global", Versions((5, 5)), Versions((5, 5))),
    "port":                      SystemVariable(lambda session: session.facts.port, "global"),
    "protocol_version":          SystemVariable(_always(10), "global"),
    "pseudo_thread_id":          SystemVariable(lambda session: session.connection_id, "session"),
    "query_cache_size":          SystemVariable(_always(0), "global", Versions(before=(8, 0, 3))),
    "query_cache_type":          SystemVariable(_always("OFF"), "both", Versions(before=(8, 0, 3))),
    "read_only":                 SystemVariable(_always(True), "global"),
    "relay_log":                 SystemVariable(_always(""), "global"),
    "relay_log_info_repository": SystemVariable(_always("FILE"), "global", Versions((5, 6, 2), (8, 3)), None),
    "relay_log_purge":           SystemVariable(_always(True), "global"),
    "report_host":               SystemVariable(_always(None), "global"),
    "report_port":               SystemVariable(lambda session: session.facts.port, "global"),
    "report_user":               SystemVariable(_always(None), "global"),
    "rpl_semi_sync_master_enabled": SystemVariable(_always(True), "global", offered=_semi_sync),
    "rpl_semi_sync_source_enabled": SystemVariable(_always(True), "global", mariadb=None, offered=_semi_sync),
    "server_id":                 SystemVariable(lambda session: session.facts.server_id, "global",
                                                offered=lambda facts: facts.unreached is None),
    "server_uuid":               SystemVariable(lambda session: session.facts.server_uuid, "global", Versions((5, 6)), None,
                                                lambda facts: facts.server_uuid is not None),
    "session_track_gtids":       SystemVariable(_always("OFF"), "both", Versions((5, 7, 6)), None),
    "session_track_schema":      SystemVariable(_always(False), "both", Versions((5, 7, 4)), Versions((10, 2, 2))),
    "session_track_system_variables": SystemVariable(_always(""), "both", Versions((5, 7, 4)), Versions((10, 2, 2))),
    "skip_name_resolve":         SystemVariable(_always(True), "global"),
    "skip_networking":           SystemVariable(_always(False), "global"),
    "slave_net_timeout":         SystemVariable(_always(60), "global"),
    "slave_parallel_workers":    SystemVariable(_always(0), "global", Versions((5, 6, 3)), Versions((10, 0, 5))),
    "socket":                    SystemVariable(_always(""), "global"),
    "sql_auto_is_null":          SystemVariable(_always(False)),
    "sql_log_bin":               SystemVariable(_always(True), "session"),
    "sql_mode":                  SystemVariable(_always("")),
    "sql_safe_updates":          SystemVariable(_always(False)),
    "sql_select_limit":          SystemVariable(_always(18446744073709551615)),
    "super_read_only":           SystemVariable(_always(True), "global", Versions((5, 7, 8)), None),
    "sync_binlog":               SystemVariable(_always(1), "global"),
    "system_time_zone":          SystemVariable(_always("UTC"), "global"),
    "time_zone":                 SystemVariable(_always("SYSTEM")),
    "tmpdir":                    SystemVariable(_always("/tmp"), "global"),
    "transaction_isolation":     SystemVariable(_always("REPEATABLE-READ"), "both", Versions((5, 7, 20)), Versions((11, 1, 1))),
    "transaction_read_only":     SystemVariable(_always(False), "both", Versions((5, 7, 20)), Versions((11, 1, 1))),
    "tx_isolation":              SystemVariable(_always("REPEATABLE-READ"), "both", Versions(before=(8, 0, 3))),
    "tx_read_only":              SystemVariable(_always(False), "both", Versions((5, 6, 5), (8, 0, 3)), Versions((10, 0))),
    "unique_checks":             SystemVariable(_always(True)),
    "version":                   SystemVariable(lambda session: session.facts.version, "global"),
    "version_comment":           SystemVariable(_always("binlog-relay"), "global"),
    "version_compile_machine":   SystemVariable(_always("x86_64"), "global"),
    "version_compile_os":        SystemVariable(_always("Linux"), "global"),
    "wait_timeout":              SystemVariable(_always(28800)),
    "warning_count":             SystemVariable(lambda session: len(session.notices), "session"),
    "wsrep_on":                  SystemVariable(_always(False), "both", None, Versions((10, 1))),
}
# fmt: on

# No SET changes them in a server either.
READ_ONLY: Final = frozenset(
    ("character_set_system", "datadir", "gtid_binlog_pos", "gtid_current_pos", "gtid_executed", "gtid_owned", "hostname",
     "innodb_read_only", "innodb_version", "last_gtid", "license", "log_bin",
     "log_bin_basename", "log_bin_index", "log_replica_updates", "log_slave_updates", "lower_case_table_names",
     "performance_schema", "port", "protocol_version", "relay_log", "report_host", "report_port", "report_user", "server_uuid",
     "skip_name_resolve", "skip_networking", "socket", "system_time_zone", "tmpdir", "version", "version_comment",
     "version_compile_machine", "version_compile_os")
)  # fmt: skip
# Client libraries and monitors set these of their own accord, and nobody reads them; nothing here depends on them.
ALSO_SETTABLE: Final = frozenset(
    (
        "big_tables", "completion_type", "default_week_format",
        "div_precision_increment", "explicit_defaults_for_timestamp", "innodb_lock_wait_timeout", "insert_id",
        "information_schema_stats_expiry", "join_buffer_size", "lc_messages", "log_queries_not_using_indexes",
        "log_slow_filter", "log_slow_verbosity", "max_error_count", "max_execution_time", "max_heap_table_size",
        "max_join_size", "max_sort_length", "max_statement_time", "net_retry_count", "old_passwords", "optimizer_switch",
        "print_identified_with_as_hex", "profiling", "profiling_history_size", "pseudo_replica_mode", "pseudo_slave_mode",
        "rand_seed1", "rand_seed2", "read_buffer_size", "resultset_metadata", "server_audit_logging",
        "session_track_gtids", "session_track_state_change", "session_track_transaction_info", "slow_query_log",
        "sort_buffer_size", "sql_big_selects", "sql_buffer_result", "sql_log_off", "sql_notes", "sql_quote_show_create",
        "sql_warnings", "timestamp", "tmp_table_size", "tx_isolation", "updatable_views_with_limit", "wsrep_sync_wait",
    )
)  # fmt: skip


# A replica asks for these first, and a wrong answer would stop it for good.
OF_THE_SOURCE: Final = frozenset(("server_id", "server_uuid"))


def check_source_known(facts: SourceFacts) -> None:
    """Refuse variables that are unknown until the source was reached. Raises: StatementRefused (1053)."""
    if facts.unreached is not None:
        raise StatementRefused(ErrorCode.ER_SERVER_SHUTDOWN, facts.unreached())


def check_mode_known(facts: SourceFacts) -> None:
    """Refuse a GTID_MODE that is not known yet. Raises: StatementRefused (1053)."""
    if not facts.gtids().is_settled:
        text = "binlog-relay has not read its directory to the end yet, and no GTIDs so far: try again"
        raise StatementRefused(ErrorCode.ER_SERVER_SHUTDOWN, text)


def variable_named(name: str, facts: SourceFacts) -> SystemVariable:
    """Return the variable of that name, in any case. Raises: StatementRefused (1193) if this source would not have it."""
    variable = SYSTEM_VARIABLES.get(name.lower())
    if variable is None or not variable.exists(facts):
        raise unknown_variable(name)
    return variable


def current_value(name: str, variable: SystemVariable, session: StatementSession, scope: str = "") -> Value:
    """Return the session's value, or everybody's."""
    if scope != "global" and name.lower() in session.system_variables:
        value = session.system_variables[name.lower()]
    else:
        value = variable.value(session)
    if isinstance(value, str):
        session.effort.spend_on_text(len(value))
    return value


def read_variable(name: str, scope: str, session: StatementSession) -> Typed:
    """Read `@@name` or `@@scope.name`. Raises: StatementRefused (1193; 1238 for a scope it does not have; 1053 for a fact of a source
    that was not reached yet, which replicas of all versions take for a lost connection: they reconnect by themselves).
    """
    if name.lower() in OF_THE_SOURCE:
        check_source_known(session.facts)
    if name.lower() == "gtid_mode":
        check_mode_known(session.facts)
    variable = variable_named(name, session.facts)
    # MariaDB's server_id and others have a session's value; its SELECT takes that scope for a few global ones.
    wrong = (
        variable.scope == "global"
        and scope in ("session", "local")
        and not (session.facts.is_mariadb and name.lower() == "server_id")
    )
    if wrong or (variable.scope == "session" and scope == "global"):
        raise StatementRefused(
            ErrorCode.ER_INCORRECT_GLOBAL_LOCAL_VAR,
            f"Variable '{shown(name, 64)}' is a {variable.scope.upper()} variable",
        )
    value = current_value(name, variable, session, scope)
    return values.system_value(session.facts, value, is_real=variable.is_real)


def shown_value(name: str, session: StatementSession, scope: str = "") -> str:
    """Return the value as SHOW VARIABLES prints it: ON and OFF, and no NULL."""
    value = current_value(name, SYSTEM_VARIABLES[name], session, scope)
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return "" if value is None else str(value)
