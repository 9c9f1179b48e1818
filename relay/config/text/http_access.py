"""[http] of a configuration: its token, its certificate, and its reach; on the raw text."""

import datetime
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from relay.config.text.passwords import check_credential, warn_of_open_file
from relay.config.text.problems import Findings
from relay.process.certificates import CertificateError, ServerTls, load_server_tls

_FORMS: Final = ("token", "token_file", "token_env", "token_credential")
_TLS_FILES: Final = ("tls_cert", "tls_key")
_SHORT: Final = 16
_GENERATE: Final = "Make one: openssl rand -hex 32"


def check_http(data: Mapping[str, Any], config_path: Path, findings: Findings) -> ServerTls | None:
    """Find the problems of the section; return the TLS that it offers, None if it offers none."""
    section = data.get("http")
    if not isinstance(section, dict):
        return None
    has_token = _check_token(section, config_path, findings)
    tls = _load_tls(section, findings)
    if section.get("enabled") is True:
        _check_reach(section, has_token, findings)
        _check_port(data, section, findings)
    return tls


def _check_token(section: Mapping[str, Any], config_path: Path, findings: Findings) -> bool:
    given = [form for form in _FORMS if form in section]
    if len(given) > 1:
        findings.problem("http.token", f"is given {len(given)} times ({', '.join(given)})", "Keep one")
    token = section.get("token")
    if isinstance(token, str):
        warn_of_open_file("file", config_path, findings)
        _check_text("http.token", token, findings)
    file = section.get("token_file")
    if isinstance(file, str):
        try:
            written = Path(file).read_text(encoding="utf-8")
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            findings.problem("http.token_file", what, "Create it, or give this user read permission")
        except UnicodeDecodeError:
            findings.problem("http.token_file", f"{file} is not UTF-8 text", f"Write the token into it. {_GENERATE}")
        else:
            warn_of_open_file("http.token_file", Path(file), findings)
            _check_text("http.token_file", written.removesuffix("\n").removesuffix("\r"), findings)
    variable = section.get("token_env")
    if isinstance(variable, str):
        if variable not in os.environ:
            what = f"the environment has no variable {variable}"
            findings.problem("http.token_env", what, "Set it before starting")
        else:
            _check_text("http.token_env", os.environ[variable], findings)
    credential = section.get("token_credential")
    if isinstance(credential, str) and credential:
        text = check_credential("http.token_credential", credential, findings)
        if text is not None:
            _check_text("http.token_credential", text, findings)
    return bool(given)


def _check_text(key: str, token: str, findings: Findings) -> None:
    if not token:
        findings.problem(key, "the token is empty", _GENERATE)
    elif not token.isascii() or not token.isprintable() or " " in token:
        what = "the token has characters that cannot stand in a header"
        findings.problem(key, what, f"Use letters, digits and -._~+/=. {_GENERATE}")
    elif len(token) < _SHORT:
        findings.warning(key, f"the token has {len(token)} characters: it can be guessed", _GENERATE)


def _load_tls(section: Mapping[str, Any], findings: Findings) -> ServerTls | None:
    given = {key: Path(section[key]) for key in _TLS_FILES if isinstance(section.get(key), str)}
    certificate, key = given.get("tls_cert"), given.get("tls_key")
    if certificate is None or key is None:
        if given:
            missing = "tls_cert" if certificate is None else "tls_key"
            what = f"is missing, and {next(iter(given))} is given"
            findings.problem(f"http.{missing}", what, "TLS needs tls_cert and tls_key")
        return None
    warn_of_open_file("http.tls_key", key, findings)
    try:
        tls = load_server_tls(certificate, key, None)
    except CertificateError as error:
        findings.problem(f"http.tls_{error.part}", error.what, error.advice)
        return None
    problem = tls.problem(datetime.datetime.now(datetime.UTC))
    if problem is not None:
        instead = "Monitors that check certificates refuse it: have it renewed, then send SIGHUP"
        findings.warning("http.tls_cert", f"{certificate} {problem}", instead)
    return tls


def _check_reach(section: Mapping[str, Any], has_token: bool, findings: Findings) -> None:
    host = section.get("host", "127.0.0.1")
    if not isinstance(host, str) or is_loopback(host):
        return
    if not has_token:
        what = f"whoever reaches {host} reads names of accounts, addresses and files: there is no token"
        findings.warning("http.host", what, "Give http.token_file or http.token_credential, or listen at 127.0.0.1")
    elif "tls_cert" not in section:
        what = f"the token crosses the network to {host} in clear: there is no TLS"
        findings.warning("http.host", what, "Give http.tls_cert and http.tls_key, or listen at 127.0.0.1")


def _check_port(data: Mapping[str, Any], section: Mapping[str, Any], findings: Findings) -> None:
    listen = data.get("listen")
    port = listen.get("port", 3307) if isinstance(listen, dict) else 3307
    if section.get("port") == port:
        findings.problem("http.port", f"is {port}, as listen.port is", "Give them different ports")


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches it: a name or an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
