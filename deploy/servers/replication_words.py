"""The products' spellings of the statements of replication."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# Options of the statement that have no prefix.
_PLAIN: Final = frozenset(
    {
        "RELAY_LOG_FILE",
        "RELAY_LOG_POS",
        "IGNORE_SERVER_IDS",
        "DO_DOMAIN_IDS",
        "IGNORE_DOMAIN_IDS",
        "GET_SOURCE_PUBLIC_KEY",
        "PRIVILEGE_CHECKS_USER",
        "REQUIRE_ROW_FORMAT",
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS",
        "GTID_ONLY",
    }
)


@dataclass(frozen=True)
class ReplicationWords:
    """The statements of one product; MySQL 8.4 and later know only the new words.

    `prefix` is that of most options of `change`. `defaults` are options that suit tests, with the old prefix.
    """

    binlog_status: str = "SHOW MASTER STATUS"
    replica_status: str = "SHOW SLAVE STATUS"
    replica: str = "SLAVE"
    change: str = "CHANGE MASTER TO"
    prefix: str = "MASTER_"
    defaults: Mapping[str, object] = field(default_factory=lambda: {"MASTER_CONNECT_RETRY": 1})

    def change_statement(self, options: Mapping[str, object]) -> str:
        """Return the statement with these options after the defaults.

        Names may be in any case, with the old prefix, the new one, or none.
        """
        named: dict[str, object] = dict(self.defaults)
        for key, value in options.items():
            name = key.upper()
            if name not in _PLAIN and not name.startswith(("MASTER_", "SOURCE_")):
                name = f"MASTER_{name}"
            named[name.replace("SOURCE_", "MASTER_", 1) if name.startswith("SOURCE_") else name] = value
        words = [f"{name.replace('MASTER_', self.prefix, 1)} = {_literal(value)}" for name, value in named.items()]
        return f"{self.change} {', '.join(words)}"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_literal, value)) + ")"
    text = str(value)
    if text in (
        "no",
        "slave_pos",
        "current_pos",
        "LOCAL",
    ):  # These are bare words of MASTER_USE_GTID and of ASSIGN_GTIDS…
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
