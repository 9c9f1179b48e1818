"""The sql_mode that statements carry: bits of modes that are gone."""

from typing import Final

from relay.audit.readiness.check import Check, Effect

_BITS: Final = {
    "POSTGRESQL": 1 << 8,
    "ORACLE": 1 << 9,
    "MSSQL": 1 << 10,
    "DB2": 1 << 11,
    "MAXDB": 1 << 12,
    "NO_KEY_OPTIONS": 1 << 13,
    "NO_TABLE_OPTIONS": 1 << 14,
    "NO_FIELD_OPTIONS": 1 << 15,
    "MYSQL323": 1 << 16,
    "MYSQL40": 1 << 17,
    "NO_AUTO_CREATE_USER": 1 << 28,
}

MODE_GONE: Final = Check(
    "sql_mode_gone",
    Effect.TO_KNOW,
    "Modes that are gone, in the sql_mode of statements",
    "MySQL 8.0.11 and later",
    "A replica passes over these bits. Programs that set such a mode on the new server get error 1231.",
    "MySQL 8.0 manual, What Is New; a 9.7 replica of 5.6",
)


def gone_modes(sql_mode: int) -> list[str]:
    """Names of the modes in `sql_mode` that no MySQL since 8.0.11 has."""
    return [name for name, bit in _BITS.items() if sql_mode & bit]
