"""The sql_mode that statements carry: bits of modes that are gone."""

from typing import Final

from protocol.sql.sql_mode import GONE_MODES
from relay.audit.readiness.check import Check, Effect

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
    return [name for name, bit in GONE_MODES.items() if sql_mode & bit]
