"""The TLS files that a configuration names: towards the replicas, and towards the source."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from protocol.auth.rsa_key import ServerKey
from relay.config.text.passwords import warn_of_open_file
from relay.config.text.problems import Findings
from relay.config.text.source_list import own_values, sources_in
from relay.config.text.toml_text import SERVER_FILES, accounts_in, replicas_in
from relay.process.certificates import CertificateError, ServerTls, load_server_tls

_TLS_FILES: Final = ("tls_cert", "tls_key", "tls_client_ca")
_TLS_KEYS: Final = frozenset(("ssl_ca", "ssl_cert", "ssl_key"))


def load_listen_tls(data: Mapping[str, Any], findings: Findings) -> ServerTls | None:
    """Return the TLS that replicas are offered; None if none is, or if its files are unusable."""
    listen = data.get("listen")
    given = {
        key: Path(listen[key]) for key in _TLS_FILES if isinstance(listen, dict) and isinstance(listen.get(key), str)
    }
    _check_accounts(data, given, findings)
    certificate, key = given.get("tls_cert"), given.get("tls_key")
    if certificate is None or key is None:
        if given:
            missing = "tls_cert" if certificate is None else "tls_key"
            what = f"is missing, and {next(iter(given))} is given"
            findings.problem(f"listen.{missing}", what, "TLS needs tls_cert and tls_key")
        return None
    warn_of_open_file("listen.tls_key", key, findings)
    try:
        tls = load_server_tls(certificate, key, given.get("tls_client_ca"))
    except CertificateError as error:
        findings.problem(f"listen.tls_{error.part}", error.what, error.advice)
        return None
    problem = tls.problem(datetime.datetime.now(datetime.UTC))
    if problem is not None:
        instead = "Replicas that check certificates refuse it: have it renewed, then send SIGHUP"
        findings.warning("listen.tls_cert", f"{certificate} {problem}", instead)
    return tls


def _check_accounts(data: Mapping[str, Any], given: Mapping[str, Path], findings: Findings) -> None:
    """Find accounts that require what is not offered."""
    for key, account in accounts_in(data):
        if account.get("require_tls") is True and not given.keys() & {"tls_cert", "tls_key"}:
            what = "nobody could log in: no TLS is offered"
            findings.problem(f"{key}.require_tls", what, "Give listen.tls_cert and listen.tls_key")
        if account.get("require_client_cert") is True and "tls_client_ca" not in given:
            what = "nobody could log in: no client's certificate is trusted"
            instead = "Give listen.tls_client_ca, the authority that signs the clients' certificates"
            findings.problem(f"{key}.require_client_cert", what, instead)


def check_server_tls(data: Mapping[str, Any], findings: Findings) -> None:
    """Check the connections to the sources and to the replicas: files that cannot be read, options that contradict each other."""
    for name, replica in replicas_in(data):
        check_server_files(name, replica, findings)
    for name, source, first in sources_in(data):
        own = own_values(source, first)
        if source.get("kind") == "server" and (first is None or own.keys() & {"ssl_mode", *SERVER_FILES}):
            check_server_files(name, source, findings)


def check_server_files(name: str, source: Mapping[str, Any], findings: Findings) -> None:
    """Check the files by which a server proves its identity, and the relay its own. name: of its section."""
    mode = source.get("ssl_mode", "preferred")
    given = [key for key in SERVER_FILES if key in source]
    for key in given:
        file = source[key]
        try:
            with open(str(file), "rb") as opened:
                opened.read(1)
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            findings.problem(f"{name}.{key}", what, "Name a PEM file that this user can read")
        else:
            if key == "ssl_key":
                warn_of_open_file(f"{name}.ssl_key", Path(str(file)), findings)
    for one, other in (("ssl_cert", "ssl_key"), ("ssl_key", "ssl_cert")):
        if one in source and other not in source:
            findings.problem(f"{name}.{other}", f"is missing, and {one} is given", "Write both, or none")
    if "public_key" in given:
        _check_public_key(name, Path(str(source["public_key"])), mode, findings)
    unused = [key for key in given if key in _TLS_KEYS]
    if mode == "disabled" and unused:
        findings.warning(f"{name}.{unused[0]}", 'is not used: ssl_mode is "disabled"', "Take one of them out")
    elif mode == "verify_ca" and "ssl_ca" not in given:
        what = "is missing: a certificate of any authority of the system passes, whoever has it"
        findings.problem(
            f"{name}.ssl_ca", what, 'Name the authority of the server, or write ssl_mode = "verify_identity"'
        )
    elif "ssl_ca" in given and mode in ("preferred", "required"):
        what = f'is not used: ssl_mode "{mode}" checks no certificate'
        findings.warning(f"{name}.ssl_ca", what, 'Write ssl_mode = "verify_ca" or "verify_identity"')


def _check_public_key(name: str, file: Path, mode: object, findings: Findings) -> None:
    """Check the key: a server takes a password that is encrypted with its key on connections without TLS only."""
    key = f"{name}.public_key"
    try:
        ServerKey.from_pem(file.read_bytes())
    except OSError:
        return  # reported for all files
    except ValueError as error:
        findings.problem(
            key, f"{file} cannot be used: {error}", "MySQL keeps its own as public_key.pem in its data directory"
        )
        return
    if mode == "preferred":
        what = "is used only as long as the server offers no TLS"
        findings.warning(key, what, 'Write ssl_mode = "disabled", or ssl_mode = "verify_ca" with ssl_ca in its place')
    elif mode != "disabled":
        findings.warning(key, f'is not used: ssl_mode "{mode}" asks for TLS', "Take it out")
