"""Reading relay.toml and checking it as a whole: every mistake is named at once, with what to write instead."""

from pathlib import Path

from pydantic import ValidationError

from relay.config.model_problems import model_problem
from relay.config.sections import Config
from relay.config.text.combinations import check_combinations
from relay.config.text.http_access import check_http
from relay.config.text.passwords import check_passwords
from relay.config.text.problems import ConfigError, Findings
from relay.config.text.source_list import is_of_the_first
from relay.config.text.tls_files import check_server_tls, load_listen_tls
from relay.config.text.toml_text import read_toml


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises: ConfigError naming every problem at once: an unreadable file, a TOML syntax error with line and column, wrong or unknown
    keys, password forms that are missing, doubled or unreadable.
    """
    data = read_toml(path)
    findings = Findings()
    config: Config | None = None
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        details = [detail for detail in error.errors(include_url=False) if not is_of_the_first(detail["loc"], data)]
        findings.problems += [model_problem(detail, data) for detail in details]
    check_passwords(data, path, findings)
    server_tls = load_listen_tls(data, findings)
    http_tls = check_http(data, path, findings)
    check_server_tls(data, findings)
    check_combinations(data, findings)
    if config is None or findings.problems:
        # The ValidationError is not chained: its text could show what was typed for a password.
        raise ConfigError(path, sorted(findings.problems, key=lambda problem: _section_rank(problem.key))) from None
    for number, account in enumerate(config.accounts, start=1):
        if account.password_text() == "":
            what = "is empty: whoever knows the user's name logs in"
            findings.warning(f"account#{number}.password", what, "Give it one")
    if not config.accounts:
        findings.warning("account", "there is none, so no replica can log in", "Add an [[account]] section")
    config.remember(tuple(dict.fromkeys(findings.warnings)), server_tls, http_tls)
    return config


def _section_rank(key: str) -> int:
    names = (
        "file",
        "source",
        "failover",
        "archive",
        "retention",
        "listen",
        "http",
        "memory",
        "view",
        "account",
        "replica",
    )
    return next((rank for rank, name in enumerate(names) if key.startswith(name)), len(names))
