"""The statements for source and replica, in the words of their versions.

Passwords are placeholders for the code that prints them: `{source_password}` and `{replica_password}` stand for SQL strings.
"""

import shlex

from protocol.sql.server_version import version_numbers
from relay.setup.relay_toml import VIEW_NAME
from relay.setup.setup_answers import SetupAnswers, SourceSurvey
from relay.view.seeding.replica_retries import retry_options
from relay.view.seeding.restore_advice import WITHOUT_MODE

SOURCE_PASSWORD = "{source_password}"
REPLICA_PASSWORD = "{replica_password}"


def source_statements(answers: SetupAnswers, survey: SourceSurvey) -> list[str]:
    """Return the statements that create the relay's account at the source."""
    account = f"{sql_text(answers.source_user)}@'%'"
    statements = []
    if survey.flavour == "mysql" and survey.number < (8, 0, 0):
        statements.append("SET sql_log_bin = 0;  -- newer replicas cannot apply this version's CREATE USER")
    return [
        *statements,
        f"CREATE USER {account} IDENTIFIED BY {SOURCE_PASSWORD};  -- '%' is everywhere: better the relay's address",
        f"GRANT {', '.join(_privileges(answers, survey))} ON *.* TO {account};",
    ]


def _privileges(answers: SetupAnswers, survey: SourceSurvey) -> list[str]:
    """Return what the relay needs. Views of statements, and foreign keys, need to see all tables with their triggers."""
    more = ["PROCESS", "TRIGGER"] if answers.view is not None else []
    return ["REPLICATION SLAVE", "REPLICATION CLIENT", "REFERENCES", *more]


def replica_statements(answers: SetupAnswers, survey: SourceSurvey) -> list[str]:
    """Return the statements that attach a replica to the relay, from the source's oldest binlog, or by GTID."""
    flavour, number = _replica(answers, survey)
    new_words = flavour == "mysql" and number >= (8, 0, 23)
    word, verb = ("SOURCE", "REPLICA") if new_words else ("MASTER", "SLAVE")
    change = "CHANGE REPLICATION SOURCE TO" if new_words else "CHANGE MASTER TO"
    options = [
        f"{word}_HOST = {sql_text(answers.relay_host)}",
        f"{word}_PORT = {answers.listen_port}",
        f"{word}_USER = {sql_text(answers.replica_user)}",
        f"{word}_PASSWORD = {REPLICA_PASSWORD}",
    ]
    if flavour == "mysql" and number >= (8, 0, 0):
        options += [f"{word}_SSL = 0", f"GET_{word}_PUBLIC_KEY = 1"]
    elif flavour == "mariadb" and number >= (11, 4, 0):
        options += ["MASTER_SSL = 0", "MASTER_SSL_VERIFY_SERVER_CERT = 0"]
    options += retry_options(word, flavour, number)
    before: list[str] = []
    if answers.view is not None and survey.has_older_data:
        return _seeding(answers, survey)
    if answers.view is not None:
        before.append("-- the binlogs begin with the first: an empty server. One with data is seeded in place of this:")
        before += [f"--   {line}" for line in _dump_and_seed(answers, survey)]
    if answers.view is not None or (flavour == survey.flavour == "mysql" and survey.gtid_mode == "ON"):
        options.append(f"{word}_AUTO_POSITION = 1")
        if number < (8, 0, 0):
            before.append(
                "-- gtid_mode and enforce_gtid_consistency must be ON in its my.cnf, with log_bin and log_slave_updates"
            )
    elif flavour == survey.flavour == "mariadb":
        options.append("MASTER_USE_GTID = slave_pos")
        before.append("-- a replica with data from a backup: SET GLOBAL gtid_slave_pos = '…' of the backup first")
    else:
        options += [f"{word}_LOG_FILE = {sql_text(survey.oldest or 'mysql-bin.000001')}", f"{word}_LOG_POS = 4"]
        before.append("-- a replica with data from a backup: file and position of the backup instead")
        if flavour == "mysql" and number >= (8, 0, 0):
            before += [
                "SET GLOBAL gtid_mode = ON_PERMISSIVE;",
                "SET GLOBAL gtid_mode = OFF_PERMISSIVE;",
                "SET GLOBAL enforce_gtid_consistency = OFF;",
            ]
    return [*before, f"{change} {', '.join(options)};", f"START {verb};"]


def _seeding(answers: SetupAnswers, survey: SourceSurvey) -> list[str]:
    """Return the commands, as comments, where an empty server would stop at the first statement over older data."""
    return [
        f"-- What was written before {survey.oldest} is in no binlog: the new server needs the data. Start the relay, then",
        *(f"--   {line}" for line in _dump_and_seed(answers, survey)),
        "-- and type what the last command prints, which is RESET, gtid_purged, CHANGE and START for that dump.",
    ]


def _dump_and_seed(answers: SetupAnswers, survey: SourceSurvey) -> list[str]:
    mariadb = survey.flavour == "mariadb"
    tool, position = ("mariadb-dump", "master-data") if mariadb else ("mysqldump", "source-data")
    host = f"-h {shlex.quote(answers.source_host)} -P {answers.source_port}"
    return [
        f"{tool} {host} --single-transaction --{position}=2 --routines --triggers --events --hex-blob --databases shop > dump.sql",
        f"(echo 'SET sql_log_bin = 0;'; sed '{WITHOUT_MODE}' dump.sql) | mysql -h new",
        f"binlog-relay view seed {VIEW_NAME} --dump dump.sql --config {shlex.quote(str(answers.config))}",
    ]


def _replica(answers: SetupAnswers, survey: SourceSurvey) -> tuple[str, tuple[int, ...]]:
    """Return flavour and version of the replicas: as given, else the view's, else the source's."""
    named = answers.replica_version or answers.view
    if named is not None:
        flavour, _, version = named.partition("-")
        return flavour, version_numbers(version if version.count(".") > 1 else f"{version}.99")
    return survey.flavour or "mysql", survey.number


def sql_text(text: str) -> str:
    """Return a string of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
