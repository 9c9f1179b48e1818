"""The definition of an audit job."""

from collections.abc import Callable
from dataclasses import dataclass

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditResult


@dataclass(frozen=True, slots=True)
class Job:
    """An audit. `title` heads the report, and `what` below it describes what was examined. With `takes_tables` --tables narrows it;
    with `takes_target` --for gives the version of the replicas; with `takes_row` --table and --key name its row.

    `not_in_all` says why it is not among all audits, unless --tables narrows it.
    """

    name: str
    title: str
    what: str
    run: Callable[[Audit], AuditResult]
    takes_tables: bool = False
    takes_target: bool = False
    takes_row: bool = False
    not_in_all: str = ""
