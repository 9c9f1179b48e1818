"""The parts of one view's rules, made for its settings."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from protocol.sql.expressions.constructs import Operand
from protocol.sql.kind import kind_of
from protocol.sql.tables.source_table import Column, TableName
from relay.source_tables.references import BY_THE_SERVER_SINCE
from relay.view.rules.judged.converted_columns import check_conversions
from relay.view.rules.judged.known_source import Columns, KnownSource
from relay.view.rules.judged.statement_judge import StatementJudge
from relay.view.rules.mariadb.left_out import ACCOUNT, PART, SEQUENCE
from relay.view.rules.mariadb.rows.column_rule import TargetChoice
from relay.view.rules.mariadb.rows.learned_tables import ToldDefinition, learn_definition
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.mariadb.statement_translation import translate_statement
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.status_translation import StatusTranslation, TranslatedStatus
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import AS_LOGGED, LoggedQuery
from relay.view.rules.targets.known.target import TARGETS_BY_NAME


class StatementsOfView:
    """Translates statements, and reports their definitions to the tables."""

    def __init__(self, settings: ViewSettings, tables: MariadbTables, collations: MariadbCollations) -> None:
        self._settings = settings
        self._tables = tables
        self._collations = collations
        self._judge = StatementJudge(settings.target_version, settings.accept, settings.foreign_keys)
        self.left_out: list[tuple[str, str]] = []
        """The kinds of `LeftOut`, each with a description, since it was emptied."""
        self.runs_as = AS_LOGGED
        """How replicas must run the statement that was translated last."""

    def translate(
        self,
        query: LoggedQuery,
        status: TranslatedStatus,
        *,
        rows_follow: bool,
        variables: Mapping[str, Operand] | None = None,
        makes_numbers: bool = False,
    ) -> list[bytes]:
        """Return the resulting texts, of which all but the last commit; none: it is left out. `rows_follow`: rows of its transaction
        follow it. `variables` and `makes_numbers` are as for `StatementJudge.check`, whose result is in `runs_as` then. Raises:
        Untranslatable.
        """
        self.runs_as = AS_LOGGED
        self._judge.note_source(query.server_version)
        context = StatementContext(
            query.schema_bytes,
            status.sql_mode,
            status.charset,
            query.server_version,
            self._settings.target_version,
            self._collations,
            status.defaults,
            rows_follow,
            self._settings.json_columns,
            status.connection,
            query.thread_id,
            status.if_exists,
            self._keys_by_server(status.status),
            self._settings.accept,
            self._judge.has_survey,
        )
        made = translate_statement(query.raw, context, self._tables)
        if made.texts and not rows_follow:
            known = KnownSource(
                self._columns_of(query.thread_id), self._tables.programs_of, lambda: self._tables.references
            )
            check_conversions(query, known, self._judge)
            state = None if self._tables.temporary else self._tables.changes
            self.runs_as = self._judge.check(query, known, variables or {}, makes_numbers=makes_numbers, state=state)
        told = ToldDefinition(
            made.source,
            made.replica,
            made.sequences_made,
            made.sequences_dropped,
            made.versioned,
            query.thread_id,
            made.programs,
            made.programs_dropped,
            self._collations.charset_of(status.server),
        )
        learn_definition(self._tables, told)
        if made.left_out in (ACCOUNT, SEQUENCE):
            self.left_out.append((made.left_out, first_words(query.raw, query.server_version)))
        self.left_out += [(PART, report) for report in made.reports]
        return list(made.texts)

    def _columns_of(self, thread_id: int) -> Columns:
        tables = self._tables

        def columns_of(name: TableName) -> Sequence[Column]:
            known = None if tables.is_temporary(thread_id, name) else tables.get(name)
            return known.columns if known is not None else ()

        return columns_of

    def _keys_by_server(self, status: bytes) -> bool:
        """Return whether replicas execute foreign keys differently than a MariaDB in a statement with these variables."""
        settings = self._settings
        moved = settings.foreign_keys == "server" and settings.target_version >= BY_THE_SERVER_SINCE
        return moved and LoggedQuery(b"", b"", 0, 0, b"", status, "").foreign_key_checks


def first_words(text: bytes, server_version: str) -> str:
    """Return the first words of a statement, such as CREATE USER or GRANT, and nothing else: there may be a password."""
    kind = kind_of(text, server_version)
    return f"{kind.verb} {kind.thing}".strip()


class MariadbParts(NamedTuple):
    """All parts of one view."""

    tables: MariadbTables
    statements: StatementsOfView
    statuses: StatusTranslation


def parts_of(settings: ViewSettings) -> MariadbParts:
    """Return new parts, which know no tables yet."""
    collations = MariadbCollations(settings.collations, TARGETS_BY_NAME[settings.target])
    choice = TargetChoice(settings.target_version, settings.json_columns)
    tables = MariadbTables(collations.number_of, choice, settings.known_kinds, settings.plain_tables)
    return MariadbParts(tables, StatementsOfView(settings, tables, collations), StatusTranslation(collations))
