"""A replica's own settings, if an account to ask it was given."""

from collections.abc import Iterator, Sequence
from typing import Final

from protocol.printable import printable
from relay.config import Config
from relay.doctor.doctor_line import DoctorLine
from relay.doctor.server_answers import ServerAnswers
from relay.doctor.source_checks import clock_line

_DEFAULT_TIMEOUT_S: Final = 60


def replica_lines(
    about: str, config: Config, answers: ServerAnswers, source: ServerAnswers | None, others: Sequence[int]
) -> Iterator[DoctorLine]:
    """Yield the lines about a replica. source: None if it did not answer. others: the server_ids of the other replicas that were
    asked."""
    yield DoctorLine(about, "version", "ok", f"{answers.flavour} {answers.version}")
    yield _server_id(about, config, answers, source, others)
    yield _received(about, config, answers)
    yield clock_line(about, answers, "the replica")
    if not answers.variables:
        yield DoctorLine(about, "settings", "unknown", "the replica does not tell its settings")
        return
    timeout = answers.number("replica_net_timeout", "slave_net_timeout") or _DEFAULT_TIMEOUT_S
    if timeout <= config.listen.position_wait_s:
        text = f"its net timeout is {timeout} s, listen.position_wait_s {config.listen.position_wait_s:g} s: it gives up first"
        cure = "Raise slave_net_timeout (replica_net_timeout) there, or lower listen.position_wait_s."
        yield DoctorLine(about, "net_timeout", "warning", text, cure)
    else:
        yield DoctorLine(about, "net_timeout", "ok", f"{timeout} s")
    if answers.variable("read_only") in ("OFF", "0", "FALSE"):
        text = "read_only is OFF: a client may change what the source sends changes for"
        yield DoctorLine(
            about, "read_only", "warning", text, "At the replica: SET GLOBAL read_only = ON, in my.cnf too."
        )
    if answers.variable("relay_log_recovery") in ("OFF", "0"):
        text = "relay_log_recovery is OFF: after a crash its relay log may be damaged"
        yield DoctorLine(about, "relay_log_recovery", "warning", text, "Write relay_log_recovery = ON in its my.cnf.")
    if source is not None:
        yield from _against_source(about, answers, source)


def _server_id(
    about: str, config: Config, answers: ServerAnswers, source: ServerAnswers | None, others: Sequence[int]
) -> DoctorLine:
    taken = {one.server_id: "the relay's" for one in config.sources}
    if source is not None:
        taken[source.server_id] = "the source's"
    taken.update(dict.fromkeys(others, "another replica's"))
    if answers.server_id in taken:
        text = f"{answers.server_id} is {taken[answers.server_id]} server_id"
        cure = "At the replica: give it a server_id of its own, in my.cnf, and restart it."
        return DoctorLine(about, "server_id", "problem", text, cure)
    return DoctorLine(about, "server_id", "ok", str(answers.server_id))


def _received(about: str, config: Config, answers: ServerAnswers) -> DoctorLine:
    received = answers.received
    if received is None:
        why = printable(
            answers.refusals.get("SHOW REPLICA STATUS") or answers.refusals.get("SHOW SLAVE STATUS") or "no answer"
        )
        cure = "At the replica: GRANT REPLICATION CLIENT (on MariaDB SLAVE MONITOR) ON *.* to this account."
        return DoctorLine(about, "replication", "unknown", f"it does not tell: {why}", cure)
    if not received:
        text, cure = "it follows nobody yet", "REPLICAS.md has the statements; 'binlog-relay init' prints them."
        return DoctorLine(about, "replication", "warning", text, cure)
    where = printable(f"{received.get('Master_Host', '?')}:{received.get('Master_Port', '?')}")
    states = f"receives: {received.get('Slave_IO_Running')}, applies: {received.get('Slave_SQL_Running')}"
    if received.get("Slave_IO_Running") != "Yes" or received.get("Slave_SQL_Running") != "Yes":
        error = printable(received.get("Last_Error") or "")
        text = f"follows {where}; {states}" + (f"; {error}" if error else "")
        cure = "SHOW SLAVE STATUS (SHOW REPLICA STATUS) there has the whole error: see ERRORS.md."
        return DoctorLine(about, "replication", "problem", text, cure)
    if received.get("Master_Port") != str(config.listen.port):
        text = f"follows {where}, which is not this relay's port {config.listen.port}; {states}"
        return DoctorLine(about, "replication", "warning", text, "REPLICAS.md tells how it moves over.")
    return DoctorLine(about, "replication", "ok", f"follows {where}; {states}")


def _against_source(about: str, answers: ServerAnswers, source: ServerAnswers) -> Iterator[DoctorLine]:
    theirs, ours = source.variable("lower_case_table_names"), answers.variable("lower_case_table_names")
    if ours != theirs and None not in (ours, theirs):
        text = f"lower_case_table_names is {ours}, at the source {theirs}: tables are not found, or two become one"
        yield DoctorLine(
            about, "lower_case_table_names", "problem", text, "It must be the source's when the replica is set up."
        )
    largest = answers.number("replica_max_allowed_packet", "slave_max_allowed_packet")
    packet = source.number("max_allowed_packet")
    if largest is not None and packet is not None and largest < packet:
        text = (
            f"slave_max_allowed_packet is {largest}, max_allowed_packet at the source {packet}: a large event stops it"
        )
        cure = f"At the replica: SET GLOBAL slave_max_allowed_packet = {packet} (replica_max_allowed_packet)."
        yield DoctorLine(about, "max_allowed_packet", "warning", text, cure)
