"""Parts for tests of the translation of MariaDB's statements: a context, names of collations, known tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.source_table import UNKNOWN_CHARSET
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.mariadb.statement_translation import StatementTranslation, translate_statement
from relay.view.stops.stop_reason import StopReason, Untranslatable

MARIADB_10 = "10.11.19-MariaDB-log"
MARIADB_11 = "11.8.6-MariaDB-log"
_UTF8MB4 = 45


@dataclass
class FewCollations:
    """A few collations: uca1400_ai_ci becomes 0900_ai_ci of utf8mb4, unicode_520_ci of others; `uca1400` says whether it is the default
    of Unicode's sets."""

    uca1400: bool = False
    others: tuple[int, ...] = ()
    """The numbers of collations by which MySQL compares differently; it does so by those that are called nopad."""

    def name_of(self, mariadb_name: str) -> str:
        charset = mariadb_name.partition("_")[0]
        if "uca1400_ai_ci" in mariadb_name:
            return "utf8mb4_0900_ai_ci" if charset == "utf8mb4" else f"{charset}_unicode_520_ci"
        return mariadb_name

    def default_of(self, charset: str, defaults: Mapping[int, int]) -> str:
        if self.uca1400 and charset in ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"):
            return self.name_of(f"{charset}_uca1400_ai_ci")
        return {"latin1": "latin1_swedish_ci"}.get(charset, f"{charset}_general_ci")

    def compares_alike(self, number: int) -> bool:
        return number not in self.others

    def is_alike(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool | None:
        return None if not collation and charset == UNKNOWN_CHARSET else "nopad" not in collation

    def is_same_named(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool:
        return bool(collation) and "uca1400" not in collation


def told(*statements: str) -> TablesAtSource:
    """Return what is known after these definitions in the schema `shop`; nothing differs on the replicas of unknown tables."""
    state = TablesAtSource(plain=("*",))
    state.note_charset("shop", ("utf8mb4", "utf8mb4_general_ci"))
    for text in statements:
        apply_definition(state, parse_ddl(text, "shop", 0, MARIADB_10), DefiningSession())
    return state


def context_of(version: str = MARIADB_10, **settings: object) -> StatementContext:
    """Return the context of a client in utf8mb4 in the schema `shop`; `settings` are those of StatementContext."""
    made: dict[str, object] = {
        "schema": b"shop",
        "sql_mode": 0,
        "charset": _UTF8MB4,
        "server_version": version,
        "target": (9, 7),
        "collations": FewCollations(version == MARIADB_11),
    }
    return StatementContext(**{**made, **settings})  # type: ignore[arg-type]


def translated(
    text: str, known: TablesAtSource | None = None, version: str = MARIADB_10, **settings: object
) -> list[str]:
    """Return the texts that a statement becomes."""
    return [one.decode() for one in translation_of(text, known, version, **settings).texts]


def translation_of(
    text: str, known: TablesAtSource | None = None, version: str = MARIADB_10, **settings: object
) -> StatementTranslation:
    """Return the translation of a statement."""
    return translate_statement(text.encode(), context_of(version, **settings), told() if known is None else known)


def stop_of(
    text: str, known: TablesAtSource | None = None, version: str = MARIADB_10, **settings: object
) -> StopReason:
    """Return why a statement cannot be translated."""
    try:
        made = translation_of(text, known, version, **settings)
    except Untranslatable as error:
        return error.reason
    raise AssertionError(f"it became {made.texts}")
