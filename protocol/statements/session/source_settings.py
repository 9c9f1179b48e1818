"""Settings of the source that readers of its binlogs check before they begin: they are shown as the source has them."""

from collections.abc import Callable
from typing import Final

from protocol.resultset import Value
from protocol.statements.session.session import StatementSession

SOURCE_SETTINGS: Final = (
    "binlog_annotate_row_events",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    "binlog_transaction_compression",
    "character_set_server",
    "collation_server",
    "log_bin_compress",
    "lower_case_table_names",
    "max_binlog_size",
)
"""The global variables that the source is asked for: how rows are logged, how names compare, its character sets."""

_MOST_DIGITS: Final = 20


def of_source(name: str, otherwise: Callable[[StatementSession], Value]) -> Callable[[StatementSession], Value]:
    """Return a function that reads the source's value, or `otherwise(session)`, of the same type, until the source has reported it."""

    def value(session: StatementSession) -> Value:
        usual, reported = otherwise(session), session.facts.settings().get(name)
        if reported is None:
            return usual
        if isinstance(usual, bool):
            return reported.upper() in ("ON", "1")
        if isinstance(usual, int):
            return (
                int(reported)
                if reported.isascii() and reported.isdecimal() and len(reported) <= _MOST_DIGITS
                else usual
            )
        return reported

    return value
