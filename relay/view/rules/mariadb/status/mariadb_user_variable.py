"""A User_var event of a MariaDB, with a collation that the replicas have."""

from typing import Final

from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.stops import transaction_stops

_LENGTH: Final = 4
_KNOWN_VALUE: Final = 9
"""The size of type u8, collation u32, length u32."""


def translate_user_variable(body: bytes, collations: MariadbCollations) -> bytes:
    """Return the body, of unchanged size.

    Layout: name length u32, name | is NULL u8 | where it is not: type u8, collation u32, length u32, value, flags.
    Raises: Untranslatable: the replicas stop at a number that they do not know (13117).
    """
    name_stop = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    if len(body) <= name_stop:
        raise transaction_stops.user_variable_cut(body[_LENGTH:])
    if body[name_stop]:
        return body
    at = name_stop + 2
    value = at + _KNOWN_VALUE - 1
    if len(body) < value + int.from_bytes(body[value - _LENGTH : value], "little"):
        raise transaction_stops.user_variable_cut(body[_LENGTH:name_stop])
    number = int.from_bytes(body[at : at + 4], "little")
    return body[:at] + collations.number_of(number).to_bytes(4, "little") + body[at + 4 :]
