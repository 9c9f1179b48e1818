"""Audits: questions to an archive that Spark answers, each with a report.

A job is a module here with `JOB`, a `Job`; its name is listed in `JOBS`, so that the command line knows it without Spark.
"""

from typing import Final

JOBS: Final[dict[str, str]] = {
    "boundaries": "Whether the transaction boundaries in the events agree with each other and with the inference.",
    "continuity": "Whether the archive is complete from its first byte to its last, and what is missing.",
    "transactions": "Sizes, durations and rates of transactions, what was rolled back, what new replicas could apply side by side.",
    "mixing": "Groups that mix tables with and without transactions, statements with errors, groups closed by ROLLBACK.",
    "tables": "Rows inserted, updated and deleted, and bytes, per table and hour; tables without a primary key.",
    "changes": "Every change of the rows of chosen tables, in order, with the statement behind it.",
    "hot-keys": "The rows of each table that change most, by their keys, counted one by one.",
    "history": "Every change of one row, also where its key changed: --table shop.orders --key 42.",
    "definitions": "Every statement that defines something, with what it changed in tables; what is another at the end than before.",
    "readiness": "What would stop or surprise a newer replica.",
}
"""This maps a name to what the audit reports, in a sentence."""

ALL: Final = "all"
"""In place of a name, this runs every audit in one session."""
