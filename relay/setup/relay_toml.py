"""The text of a first relay.toml."""

import json
from typing import Final

from relay.setup.setup_answers import SetupAnswers, SourceSurvey

VIEW_NAME = "gtid"
ADMIN = "dba"


PROOF: Final = (
    "MySQL 8.0 and later ask for the password itself, which the relay gives to a source that proves to be itself only. Copy ca.pem",
    'from the data directory of the source, and write ssl_mode = "verify_ca" and ssl_ca = "/path/of/the/copy.pem".',
)


def needs_proof(answers: SetupAnswers, survey: SourceSurvey) -> bool:
    """Return whether the source will require a proof that the present set-up does not supply."""
    return (
        survey.flavour == "mysql"
        and survey.number >= (8, 0, 0)
        and not {"ssl_ca", "public_key"} & answers.security.keys()
    )


def relay_toml(answers: SetupAnswers, survey: SourceSurvey, server_id: int, ssl_mode: str) -> str:
    """Return the text with comments; it passes check-config."""
    lines = [
        "# Configuration of binlog-relay, written by 'binlog-relay init'. All keys: CONFIGURATION.md.",
        "# Check it with: binlog-relay check-config --config FILE; ask source and machine with: binlog-relay doctor --config FILE",
        "",
        "[source]",
        f"# {survey.shown}",
        'kind = "server"',
        'name = "source"                 # its directory in the archive',
        f"host = {toml(answers.source_host)}",
        f"port = {answers.source_port}",
        f"user = {toml(answers.source_user)}",
        f"password_file = {toml(str(answers.source_password_file))}",
        'start = "earliest"              # where an empty archive begins; "latest": with the newest binlog',
        f"server_id = {server_id:<19} # ours; no other server of this replication may have it",
        f"ssl_mode = {toml(ssl_mode):<20} # verify_ca and verify_identity keep out who sits between",
    ]
    if answers.ssl_ca is not None:
        lines.append(f"ssl_ca = {toml(str(answers.ssl_ca))}")
    if answers.public_key is not None:
        lines.append(f"public_key = {toml(str(answers.public_key))}")
    if needs_proof(answers, survey):
        lines += [f"# {line}" for line in PROOF]
    if ssl_mode == "disabled" and "ssl_mode" not in answers.security:
        lines.append("# MySQL before 5.7 speaks TLS 1.1 at most, the relay 1.2 and 1.3: keep the way to it private.")
    lines += [
        "",
        "[archive]",
        f"dir = {toml(str(answers.archive))}",
        'sync = "interval"               # transaction: nothing is lost in a crash of this machine, and slower',
        "",
        "[listen]",
        f"host = {toml(answers.listen_host)}",
        f"port = {answers.listen_port}",
        '# tls_cert = "/etc/binlog-relay/server-cert.pem"     # TLS for replicas',
        '# tls_key = "/etc/binlog-relay/server-key.pem"',
    ]
    if answers.view is not None:
        lines += [
            "",
            "[[view]]                        # a second set of binlogs, for replicas of another version",
            f"name = {toml(VIEW_NAME)}",
            f"for = {toml(answers.view)}",
        ]
    lines += [
        "",
        "[[account]]                     # by which replicas log in here; it has nothing to do with the source's accounts",
        f"user = {toml(answers.replica_user)}",
        f"password_file = {toml(str(answers.replica_password_file))}",
        'host = "%"                      # narrower: "10.0.0.0/24"',
    ]
    if answers.view is not None:
        lines.append(f"view = {toml(VIEW_NAME)}")
    lines += [
        "",
        "[[account]]                     # for you: SHOW SLAVE STATUS, CALL binlog_relay.view_skip(…) and the like",
        f"user = {toml(ADMIN)}",
        f"password_file = {toml(str(answers.admin_password_file))}",
        'host = "%"',
        "admin = true",
    ]
    return "\n".join(lines) + "\n"


def toml(text: str) -> str:
    """Return a basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
