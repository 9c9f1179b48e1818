"""The meaning of a source's settings for the relay and for all who read its binlogs; each with its cure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.printable import printable
from protocol.sql.server_version import version_numbers
from relay.archive.storage.files import UUID_NAME
from relay.config import Config, ServerSource
from relay.doctor.doctor_line import DoctorLine, Level
from relay.doctor.server_answers import ServerAnswers
from relay.process.shown_amounts import shown_bytes
from relay.row_format.row_replica import LoggedFormat
from relay.upstream.source.identity import ListedReplica, Registration

CLOCK_WARNING_S: Final = 2.0
_SHORT_EXPIRY_S: Final = 86_400
_HOUR_S: Final = 3600
_REPLICATION_SLAVE: Final = {"REPLICATION SLAVE", "REPLICATION REPLICA", "ALL PRIVILEGES", "SUPER"}
_REPLICATION_CLIENT: Final = {"REPLICATION CLIENT", "BINLOG MONITOR", "ALL PRIVILEGES", "SUPER"}
_TOO_MUCH: Final = ("ALL PRIVILEGES", "SUPER", "INSERT", "UPDATE", "DELETE", "DROP", "CREATE USER", "SHUTDOWN", "FILE")
# The oldest and the newest versions that tests replicate from.
_TRIED: Final = {"mysql": ((5, 6), (9, 7)), "mariadb": ((10, 5), (11, 8))}


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """The identity of the relay at its source: now, and when it was last attached."""

    registration: Registration
    earlier: Registration | None
    server_uuid: str | None
    newest_archived: str | None
    """The archive's newest binlog; None: it has none."""
    runs: bool = False
    """True if a relay runs on this archive, as far as is visible here."""
    ports: frozenset[int] = frozenset()
    """The local ports of its connections."""


def source_lines(
    about: str, settings: ServerSource, config: Config, answers: ServerAnswers, own: OwnPlace
) -> Iterator[DoctorLine]:
    """Yield all that can be said of a source that answers."""
    judgement = _Judgement(about, settings, answers)
    yield from judgement.privileges()
    yield judgement.version()
    yield from judgement.views(config)
    yield judgement.log_bin()
    yield judgement.server_id(own)
    yield from judgement.server_uuid(own)
    if answers.variables:
        yield judgement.format(config)
        yield judgement.row_image()
        yield judgement.row_metadata()
        yield judgement.expiry()
        yield judgement.durability()
        yield judgement.checksum()
        yield judgement.gtids()
        yield from judgement.semi_sync()
    else:
        why = answers.refusals.get("SHOW GLOBAL VARIABLES", "no answer")
        yield judgement.line("settings", "unknown", f"the source does not tell its settings: {why}")
    yield judgement.filters()
    yield judgement.cascade()
    yield judgement.binlogs(own)
    yield judgement.clock()
    yield judgement.tls()


class _Judgement:
    def __init__(self, about: str, settings: ServerSource, answers: ServerAnswers) -> None:
        self._about = about
        self._settings = settings
        self._answers = answers

    def line(self, check: str, level: Level, what: str, cure: str = "") -> DoctorLine:
        return DoctorLine(self._about, check, level, what, cure)

    def _grant(self, privilege: str) -> str:
        return f"At the source: GRANT {privilege} ON *.* TO '{self._settings.user}'@'<relay host>'."

    def privileges(self) -> Iterator[DoctorLine]:
        held = self._answers.privileges
        if held is None:
            why = self._answers.refusals.get("SHOW GRANTS", "no answer")
            yield self.line("privileges", "unknown", f"the source does not tell the account's privileges: {why}")
            return
        if not held & _REPLICATION_SLAVE:
            text = f"the account {self._settings.user!r} has no REPLICATION SLAVE: the source will send no binlog"
            yield self.line("privileges", "problem", text, self._grant("REPLICATION SLAVE"))
        elif not held & _REPLICATION_CLIENT:
            text = "REPLICATION SLAVE, but no REPLICATION CLIENT: the relay cannot see which binlogs there are"
            yield self.line("privileges", "warning", text, self._grant("REPLICATION CLIENT"))
        elif self._settings.record_schema and not held & {"REFERENCES", "SELECT", "ALL PRIVILEGES"}:
            text = (
                "no REFERENCES on all databases: columns, keys and engines are not recorded for audits and views, unless "
                "binlog_row_metadata is FULL, or it is granted on single databases"
            )
            cure = self._grant("REFERENCES") + " Or write source.record_schema = false."
            yield self.line("privileges", "warning", text, cure)
        else:
            yield self.line("privileges", "ok", "the account has what the relay needs")
        more = [name for name in _TOO_MUCH if name in held]
        if more:
            text = f"the account may do more than the relay needs: {', '.join(more)}"
            cure = "Give the relay an account of its own with REPLICATION SLAVE, REPLICATION CLIENT and REFERENCES."
            yield self.line("least_privilege", "warning", text, cure)

    def version(self) -> DoctorLine:
        number = version_numbers(self._answers.version)[:2]
        shown = f"{'MariaDB' if self._answers.flavour == 'mariadb' else 'MySQL'} {self._answers.version}"
        oldest, newest = _TRIED[self._answers.flavour]
        if oldest <= number <= newest:
            return self.line("version", "ok", shown)
        text = f"{shown} is {'older' if number < oldest else 'newer'} than the versions that the relay is tested with"
        return self.line("version", "warning", text, "See SUPPORT.md; try it with a copy of the source first.")

    def views(self, config: Config) -> Iterator[DoctorLine]:
        number = version_numbers(self._answers.version)[:2]
        for view in config.views:
            target = tuple(int(part) for part in view.target.removeprefix("mysql-").split("."))
            check = f"view {view.name}"
            cure = "Run 'binlog-relay view check' when the archive has its first binlogs: it names all that will stop the view."
            if self._answers.flavour == "mariadb" and target < (8, 0):
                text = f"for {view.target}: views of a MariaDB source are for replicas from MySQL 8.0 on"
                yield self.line(check, "problem", text, f'Write for = "mysql-8.0" or newer in [[view]] {view.name}.')
            elif self._answers.flavour == "mariadb":
                text = f"translates MariaDB {self._answers.version} for {view.target}: not everything has a translation"
                yield self.line(check, "warning", text, cure)
                yield from self._older_tables(check)
            elif number > target:
                text = f"for {view.target}, which is older than the source: what it does not know stops the view"
                yield self.line(check, "warning", text, cure)
            else:
                yield self.line(check, "ok", f"for {view.target}")

    def _older_tables(self, check: str) -> Iterator[DoctorLine]:
        """Yield, for a MariaDB that writes statements, whether the account can see what views need of tables from before the
        archive."""
        held = self._answers.privileges
        if held is None or "ALL PRIVILEGES" in held or self._answers.variable("binlog_format") == "ROW":
            return
        lacking = [name for name in ("PROCESS", "TRIGGER", "REFERENCES") if name not in held]
        if lacking:
            text = (
                "the source writes statements, and the account may not see all tables with their triggers and foreign keys: the view "
                "will stop at the first statement over a table from before the archive"
            )
            cure = self._grant(", ".join(lacking)) + " Or SET GLOBAL binlog_format = ROW there."
            yield self.line(check, "warning", text, cure)

    def log_bin(self) -> DoctorLine:
        if self._answers.variable("log_bin") in ("OFF", "0"):
            text = "the source writes no binlog (log_bin is OFF)"
            return self.line(
                "log_bin", "problem", text, "Start it with --log-bin and a server_id, or name another source."
            )
        return self.line("log_bin", "ok", "the source writes binlogs")

    def server_id(self, own: OwnPlace) -> DoctorLine:
        ours, answers = self._settings.server_id, self._answers
        cure = "Give source.server_id a number that no other server of this replication has."
        if answers.server_id == ours:
            return self.line("server_id", "problem", f"{ours} is the source's own server_id", cure)
        if answers.server_id == 0:
            text = "the source's server_id is 0: it refuses replicas"
            return self.line("server_id", "problem", text, "At the source: give it a server_id, in its my.cnf too.")
        if answers.replicas is None:
            why = next(
                (text for name, text in answers.refusals.items() if name in ("SHOW REPLICAS", "SHOW SLAVE HOSTS")), ""
            )
            text = f"{ours} is not the source's; whether another replica has it, the account may not ask ({why})"
            strangers = self._strangers(own)
            if strangers:
                text += f"; binlogs are being read by the same account from {', '.join(strangers)}"
                other = "If that is another relay, look that its server_id is another one: each would end the other's stream."
                return self.line("server_id", "warning", text, other)
            return self.line(
                "server_id", "unknown", text, "SHOW SLAVE HOSTS or SHOW REPLICAS at the source lists them."
            )
        others = [one for one in answers.replicas if one.server_id == ours and not _is_us(one, own)]
        if others:
            where = ", ".join(f"{one.host or 'a host that does not tell its name'}:{one.port}" for one in others)
            text = f"{ours} is also the server_id of {where}"
            if answers.flavour == "mariadb":
                return self.line("server_id", "problem", f"{text}: attaching would end its stream", cure)
            return self.line("server_id", "warning", f"{text}: both are served, and its list shows one of them", cure)
        return self.line("server_id", "ok", f"{ours} is no other's of {len(answers.replicas)} listed replicas")

    def server_uuid(self, own: OwnPlace) -> Iterator[DoctorLine]:
        """Yield, for sources that know it, whether a copy of this archive's directory has a relay, too."""
        if own.server_uuid is None or self._answers.replicas is None or self._answers.flavour == "mariadb":
            return
        ours = {(one.host, one.port) for one in (own.registration, own.earlier) if one is not None}
        same = [one for one in self._answers.replicas if one.server_uuid == own.server_uuid]
        elsewhere = [one for one in same if (one.host, one.port) not in ours]
        cure = f"Stop that relay, or remove {UUID_NAME} from the archive directory of one of the two."
        if elsewhere:
            where = ", ".join(f"{one.host or 'a host that does not tell its name'}:{one.port}" for one in elsewhere)
            text = f"{where} has this relay's server_uuid {own.server_uuid}: the archive was copied; each ends the other's stream"
            yield self.line("server_uuid", "problem", printable(text), cure)
        elif same and not own.runs and self._strangers(own):
            text = (
                f"a relay with the server_uuid {own.server_uuid} reads binlogs from {', '.join(self._strangers(own))}, and none is "
                "seen to run on this archive: each would end the other's stream"
            )
            late = " A source may list one that was just stopped for a while."
            yield self.line("server_uuid", "warning", printable(text), cure + late)
        else:
            yield self.line(
                "server_uuid", "ok", f"{own.server_uuid} is no other's of {len(self._answers.replicas)} listed replicas"
            )

    def _strangers(self, own: OwnPlace) -> list[str]:
        """Return the addresses from which this account reads binlogs, without the relay that runs here."""
        others = [
            one for one in self._answers.dumping if one.rpartition(":")[2] not in {str(port) for port in own.ports}
        ]
        if own.runs and len(others) == len(self._answers.dumping):
            del others[:1]  # ours, with its address translated
        return [printable(one) for one in others]

    def format(self, config: Config) -> DoctorLine:
        found = self._answers.variable("binlog_format") or "ROW"
        if found == "ROW":
            return self.line("binlog_format", "ok", "ROW")
        logged = LoggedFormat(self._answers.flavour, self._answers.version, found)
        text = {
            "STATEMENT": "STATEMENT: statements that are not deterministic give replicas other data; audits and Spark see "
            "statements and no rows",
            "MIXED": "MIXED: audits and Spark see the rows of some changes and the statements of others",
        }.get(found, found)
        cure = (
            "At the source: SET GLOBAL binlog_format = ROW, in my.cnf too; connections that are open keep the old one."
        )
        if config.views:
            text += "; a newer server may compute statements otherwise, and a view may stop at them"
            cure += f" Where it cannot be changed: {logged.answer()} There: {'; '.join(self._row_replica(logged))}."
        return self.line("binlog_format", "warning", text, cure)

    def _row_replica(self, logged: LoggedFormat) -> list[str]:
        return logged.statements(self._settings.host, self._settings.port)

    def row_image(self) -> DoctorLine:
        found = self._answers.variable("binlog_row_image")
        if found in (None, "FULL"):
            return self.line(
                "binlog_row_image", "ok", found or "rows are written whole (this version knows nothing else)"
            )
        text = f"{found}: audits and Spark do not see the columns that a change left as they were"
        cure = (
            "At the source: SET GLOBAL binlog_row_image = FULL, in my.cnf too, if anybody reads rows from the archive."
        )
        if self._answers.flavour == "mariadb":
            text += (
                "; a REPLACE of a row that is there is logged without columns that it sets to their defaults: replicas keep "
                "the old values, in silence, and a view stops at it (partial_replace_image)"
            )
            cure = "At the source: SET GLOBAL binlog_row_image = FULL, in my.cnf too; connections that are open keep the old one."
        return self.line("binlog_row_image", "warning", text, cure)

    def row_metadata(self) -> DoctorLine:
        found = self._answers.variable("binlog_row_metadata")
        if found == "FULL":
            return self.line("binlog_row_metadata", "ok", "FULL: the binlogs name the columns themselves")
        said = f"{found or 'not known to this version'}: the binlogs name no columns"
        if self._settings.record_schema:
            return self.line("binlog_row_metadata", "ok", f"{said}; the relay records them (source.record_schema)")
        cure = "Write source.record_schema = true" + (
            ", or at the source: SET GLOBAL binlog_row_metadata = FULL." if found is not None else "."
        )
        return self.line("binlog_row_metadata", "warning", f"{said}, and source.record_schema is off", cure)

    def expiry(self) -> DoctorLine:
        answers = self._answers
        seconds = answers.number("binlog_expire_logs_seconds") or (answers.number("expire_logs_days") or 0) * 86_400
        if not seconds or answers.variable("binlog_expire_logs_auto_purge") in ("OFF", "0"):
            return self.line("expiry", "ok", "the source removes no binlog by itself")
        text = f"the source keeps binlogs for {_duration(seconds)}"
        if seconds >= _SHORT_EXPIRY_S:
            return self.line("expiry", "ok", f"{text}: so long may the relay be down without a gap")
        cure = (
            "At the source: keep them for longer (expire_logs_days or binlog_expire_logs_seconds), two days at least."
        )
        return self.line("expiry", "warning", f"{text}: a relay that is down for longer has a gap", cure)

    def durability(self) -> DoctorLine:
        sync, flush = self._answers.number("sync_binlog"), self._answers.number("innodb_flush_log_at_trx_commit")
        if sync == 1 and flush in (1, None):
            return self.line("sync_binlog", "ok", "the source syncs binlog and redo log with each commit")
        text = (
            f"sync_binlog is {sync}, innodb_flush_log_at_trx_commit {flush}: after a crash of its machine the source may lack "
            "transactions that the relay and its replicas have, and the relay stops"
        )
        cure = "At the source: SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1, in my.cnf too. See ACCIDENTS.md."
        return self.line("sync_binlog", "warning", text, cure)

    def checksum(self) -> DoctorLine:
        found = self._answers.variable("binlog_checksum")
        if found == "CRC32":
            return self.line("binlog_checksum", "ok", "CRC32")
        text = f"{found or 'none in this version'}: what the network or the source's disk changes is not noticed"
        cure = "" if found is None else "At the source: SET GLOBAL binlog_checksum = CRC32, in my.cnf too."
        return self.line("binlog_checksum", "warning", f"{text}; the relay sums what it archives", cure)

    def gtids(self) -> DoctorLine:
        if self._answers.flavour == "mariadb":
            return self.line("gtids", "ok", "MariaDB's, always there: replicas may use master_use_gtid=slave_pos")
        mode = self._answers.variable("gtid_mode")
        if mode == "ON":
            return self.line("gtids", "ok", "gtid_mode is ON: replicas may use auto-position")
        if mode in (None, "OFF"):
            text = f"gtid_mode is {mode or 'not known to this version'}: replicas follow by file and position"
            return self.line("gtids", "ok", f'{text}; a [[view]] with gtids = "assign" gives them GTIDs')
        text = f"gtid_mode is {mode}: transactions with and without GTIDs are mixed, and auto-position is refused"
        cure = "Finish the change at the source: SET GLOBAL gtid_mode = ON (or OFF), one step at a time."
        return self.line("gtids", "warning", text, cure)

    def semi_sync(self) -> Iterator[DoctorLine]:
        if self._settings.ack != "synced":
            return
        state = self._answers.variable("rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled")
        if state in ("ON", "1"):
            yield self.line("semi_sync", "ok", "the source waits for acknowledgements")
            return
        why = "has no semi-synchronous replication" if state is None else "has it switched off"
        cure = 'At the source: install or switch on its plugin (rpl_semi_sync_…_enabled = ON), or write source.ack = "none".'
        yield self.line("semi_sync", "warning", f'source.ack is "synced", and the source {why}', cure)

    def filters(self) -> DoctorLine:
        newest = self._answers.newest
        if newest is None:
            why = self._answers.refusals.get("SHOW MASTER STATUS", "no answer")
            return self.line("filters", "unknown", f"whether the source filters databases it does not tell: {why}")
        if not newest.filters:
            return self.line("filters", "ok", "the source writes all databases to its binlog")
        text = f"the source leaves databases out of its binlog ({newest.filters}): nobody behind it gets them"
        return self.line(
            "filters", "warning", text, "Remove binlog_do_db and binlog_ignore_db from the source's my.cnf."
        )

    def cascade(self) -> DoctorLine:
        received = self._answers.received
        name = "log_replica_updates" if "log_replica_updates" in self._answers.variables else "log_slave_updates"
        off = self._answers.variable(name) in ("OFF", "0")
        if received is None:
            if not off:
                return self.line(
                    "cascade", "ok", f"{name} is on: what the source applies as a replica is in its binlog"
                )
            if self._answers.variable("slaves_running") == "0":
                return self.line("cascade", "ok", "the source applies nothing as a replica")
            text = f"whether the source is a replica itself it does not tell; {name} is off there"
            return self.line("cascade", "unknown", text, f"If it is a replica, set {name}=ON there and restart it.")
        if not received:
            return self.line("cascade", "ok", "the source is nobody's replica")
        if off:
            text = f"the source is a replica itself, and {name} is off: what it applies is in no binlog of it"
            return self.line(
                "cascade", "problem", text, f"Set {name}=ON in its my.cnf and restart it, or follow its source."
            )
        return self.line("cascade", "ok", f"the source is a replica itself, and writes what it applies ({name})")

    def binlogs(self, own: OwnPlace) -> DoctorLine:
        held, newest = self._answers.binlogs, own.newest_archived
        if held is None:
            why = self._answers.refusals.get("SHOW BINARY LOGS", "no answer")
            return self.line("binlogs", "unknown", f"the source does not list its binlogs: {why}")
        total = sum(size for _name, size in held)
        text = f"{len(held)} binlogs, {shown_bytes(total)}" + (f", {held[0][0]} to {held[-1][0]}" if held else "")
        if newest is None:
            return self.line("binlogs", "ok", f"{text}; the archive is empty")
        if any(name == newest for name, _size in held):
            return self.line("binlogs", "ok", f"{text}; among them {newest}, where the archive ends")
        text += f"; {newest}, where the archive ends, is not among them"
        cure = "Purged there, or another server: see ACCIDENTS.md. What is missing must come from a backup, or be accepted as a gap."
        return self.line("binlogs", "problem", text, cure)

    def clock(self) -> DoctorLine:
        return clock_line(self._about, self._answers, "the source")

    def tls(self) -> DoctorLine:
        if self._answers.security is not None:
            version, cipher = self._answers.security
            mode = self._settings.ssl_mode
            if mode in ("verify_ca", "verify_identity"):
                return self.line("tls", "ok", f"{version}, {cipher}, the source's certificate is checked ({mode})")
            text = f"{version}, {cipher}, but the source's certificate is not checked (ssl_mode {mode})"
            cure = 'Write source.ssl_mode = "verify_identity" with source.ssl_ca, or "verify_ca".'
            return self.line("tls", "warning", text, cure)
        if self._settings.host in ("localhost", "127.0.0.1", "::1"):
            return self.line("tls", "ok", "in clear, on this machine")
        cure = 'Give the source a certificate and write source.ssl_mode = "verify_identity", or keep the way to it private.'
        return self.line("tls", "warning", "in clear: who can listen on the way reads all data", cure)


def clock_line(about: str, answers: ServerAnswers, who: str) -> DoctorLine:
    """Return a line about the difference of a server's clock to ours."""
    if answers.ahead_s is None:
        return DoctorLine(about, "clock", "unknown", f"{who} does not tell its time")
    ahead_s, give_s = answers.ahead_s, answers.ahead_give_s
    direction = "ahead of" if ahead_s > 0 else "behind"
    text = f"{who}'s clock is {abs(ahead_s):.1f} s {direction} ours (±{give_s:.1f} s)"
    if abs(ahead_s) - give_s < CLOCK_WARNING_S:
        return DoctorLine(about, "clock", "ok", text)
    cure = "Let both machines keep time by NTP (timedatectl, chronyc tracking)."
    return DoctorLine(about, "clock", "warning", f"{text}: lag in seconds is wrong by that", cure)


def _duration(seconds: float) -> str:
    if seconds >= 2 * _SHORT_EXPIRY_S:
        return f"{seconds / _SHORT_EXPIRY_S:.0f} days"
    return f"{seconds / _HOUR_S:.1f} hours" if seconds >= _HOUR_S else f"{seconds:.0f} s"


def _is_us(listed: ListedReplica, own: OwnPlace) -> bool:
    if own.server_uuid is not None and listed.server_uuid == own.server_uuid:
        return True
    ours = [one for one in (own.registration, own.earlier) if one is not None]
    return any((listed.host, listed.port) == (one.host, one.port) for one in ours)
