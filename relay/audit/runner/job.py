"""What an audit job is."""

from collections.abc import Callable
from dataclasses import dataclass

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditResult


@dataclass(frozen=True, slots=True)
class Job:
    """An audit. `title` heads the report, `what` says below it what was looked at; `takes_tables`: --tables narrows it;
    `takes_target`: --for says of which version the replicas are to be; `takes_row`: --table and --key name the row it is about.

    `not_in_all`: why it is not among all audits, unless --tables narrows it."""

    name: str
    title: str
    what: str
    run: Callable[[Audit], AuditResult]
    takes_tables: bool = False
    takes_target: bool = False
    takes_row: bool = False
    not_in_all: str = ""
