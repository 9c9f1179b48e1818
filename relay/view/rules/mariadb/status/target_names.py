"""The collations of MySQL 8.0 and later by number and by name, for those that a MariaDB has or a view names.

Source: information_schema.COLLATIONS of MySQL 9.7.4.
"""

from typing import Final

from relay.view.rules.mariadb.status.source_collations import SOURCE_COLLATIONS
from relay.view.rules.targets.known.target_collations import COLLATION_NAMES

_CROATIAN: Final = {122: "utf16", 149: "ucs2", 181: "utf32", 213: "utf8mb3", 245: "utf8mb4"}
"""The numbers of MariaDB's …_croatian_mysql561_ci: its …_croatian_ci is another one, with another number."""
_LAST_SHARED: Final = 302


def _names() -> dict[int, str]:
    shared = {number: one.name for number, one in SOURCE_COLLATIONS.items() if number <= _LAST_SHARED}
    croatian = {number: f"{charset}_croatian_ci" for number, charset in _CROATIAN.items()}
    return shared | COLLATION_NAMES | croatian


TARGET_NAMES: Final[dict[int, str]] = dict(sorted(_names().items()))
"""All collations of MySQL 9.7; 8.0 and 8.4 have the same."""
TARGET_NUMBERS: Final = {name: number for number, name in TARGET_NAMES.items()}
