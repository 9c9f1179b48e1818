"""How long a replica goes on trying to reach the relay, in every statement that is printed for one."""

from collections.abc import Sequence
from typing import Final

_EVERY_S: Final = 10
_TRIES: Final = 86_400
"""Ten days. From MySQL 8.4 on the default is 10 tries, one a minute: a replica would give up within ten minutes."""
_RETRY_COUNT: Final = (5, 6)
"""The version of MySQL that has it as an option of the statement. In MariaDB before 12.0 it is an option of the server."""


def retry_options(prefix: str, flavour: str, version: Sequence[int]) -> list[str]:
    """Return the options of CHANGE REPLICATION SOURCE TO or CHANGE MASTER TO; `prefix` is SOURCE or MASTER."""
    options = [f"{prefix}_CONNECT_RETRY = {_EVERY_S}"]
    if flavour == "mysql" and tuple(version[:2]) >= _RETRY_COUNT:
        options.append(f"{prefix}_RETRY_COUNT = {_TRIES}")
    return options
