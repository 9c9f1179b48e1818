"""What the rules that make views say of an archive."""

from typing import Final

from relay.audit.readiness.check import Check, Effect

VIEW_STOPS: Final = Check(
    "view_stops",
    Effect.STOPS,
    "Transactions that stop a view",
    'MySQL 9.7 that follows a [[view]] with gtids = "assign"; most stop any replica with gtid_mode=ON',
    "The view stops before each of them; the report has the ways on. They are judged for a view with default settings: "
    "`binlog-relay view check NAME` judges for those of a [[view]].",
    "the rules that make views; what a replica stops with was tried on MySQL 9.7",
)
VIEW_UNKNOWN: Final = Check(
    "view_unknown",
    Effect.TO_KNOW,
    "Parts of files in which nobody looked for what stops a view",
    'MySQL 9.7 that follows a [[view]] with gtids = "assign"',
    "They cannot be read, or a view could not say where to go on. Tables that are defined there are not known behind it.",
    "the rules that make views",
)
