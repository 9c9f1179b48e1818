"""Passwords of a configuration: in the file itself, in a file of their own, in the environment, or a credential of the service."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from relay.config.text.problems import Findings
from relay.config.text.source_list import own_values, sources_in
from relay.config.text.toml_text import accounts_in, replicas_in

_SOURCE_FORMS: Final = ("password", "password_file", "password_env", "password_credential")
_ACCOUNT_FORMS: Final = (*_SOURCE_FORMS, "password_hash")


CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""The variable by which systemd names the directory with the credentials of a service."""
_CREDENTIAL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")


def password_text(
    password: SecretStr | None, password_file: Path | None, password_env: str | None, password_credential: str | None
) -> str | None:
    """Return the password from whichever form was given.

    Raises: OSError for a file or credential that cannot be read, KeyError for a variable that is not set.
    """
    if password is not None:
        return password.get_secret_value()
    if password_credential is not None:
        password_file = Path(os.environ[CREDENTIALS]) / password_credential
    if password_file is not None:
        # Editors end a file with a newline; no other white space is taken off, passwords may contain it.
        return password_file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    if password_env is not None:
        return os.environ[password_env]
    return None


def check_passwords(data: Mapping[str, Any], config_path: Path, findings: Findings) -> None:
    """Find forms that are missing, doubled or unreadable; on the raw text, so that other mistakes hide nothing."""
    for key, section, forms in _sections_with_secrets(data):
        _check_section(key, section, forms, config_path, findings)


def _sections_with_secrets(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    for key, source, first in sources_in(data):
        own = own_values(source, first)
        if source.get("kind") == "server" and (first is None or any(form in own for form in _SOURCE_FORMS)):
            yield key, own, _SOURCE_FORMS
    for key, account in accounts_in(data):
        yield key, account, _ACCOUNT_FORMS
    for key, replica in replicas_in(data):
        yield key, replica, _SOURCE_FORMS


def _check_section(
    key: str, section: dict[str, Any], forms: tuple[str, ...], config_path: Path, findings: Findings
) -> None:
    given = [form for form in forms if form in section]
    choice = ", ".join(forms[:-1]) + " or " + forms[-1]
    if not given:
        findings.problem(f"{key}.password", "is missing", f"Write one of {choice}")
    elif len(given) > 1:
        findings.problem(f"{key}.password", f"is given {len(given)} times ({', '.join(given)})", "Keep one")
    for form in ("password", "password_hash"):
        if form in given:
            warn_of_open_file("file", config_path, findings)
    file = section.get("password_file")
    if isinstance(file, str):
        try:
            Path(file).read_text(encoding="utf-8")
        except OSError as error:
            what = f"{file} cannot be read ({error.strerror})"
            findings.problem(f"{key}.password_file", what, "Create it, or give this user read permission")
        except UnicodeDecodeError:
            findings.problem(f"{key}.password_file", f"{file} is not UTF-8 text", "Write the password into it")
        else:
            warn_of_open_file(f"{key}.password_file", Path(file), findings)
    credential = section.get("password_credential")
    if isinstance(credential, str) and credential:
        check_credential(f"{key}.password_credential", credential, findings)
    variable = section.get("password_env")
    if isinstance(variable, str) and variable not in os.environ:
        what = f"the environment has no variable {variable}"
        findings.problem(f"{key}.password_env", what, "Set it before starting")


def check_credential(key: str, name: str, findings: Findings) -> str | None:
    """Return the text of a credential of the service; None: it cannot be read, and `findings` says why under `key`."""
    directory = os.environ.get(CREDENTIALS)
    if _CREDENTIAL.fullmatch(name) is None:
        what = "is no name of a credential: letters, digits, '_', '-' and '.' only"
        findings.problem(key, what, "Write the name before the colon of LoadCredential=, such as source.password")
    elif not directory:
        what = f"there is no credential {name}: the environment has no {CREDENTIALS}, which systemd sets"
        instead = f"Add LoadCredential={name}:FILE to the unit; at a prompt set {CREDENTIALS} to the directory of the file {name}"
        findings.problem(key, what, instead)
    else:
        path = Path(directory) / name
        try:
            return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except OSError as error:
            what = f"the credential {name} cannot be read ({path}: {error.strerror})"
            instead = f"Add LoadCredential={name}:FILE to the unit, then systemctl daemon-reload and restart"
            findings.problem(key, what, instead)
        except UnicodeDecodeError:
            findings.problem(key, f"the credential {name} is not UTF-8 text", "Write the secret into its file, as text")
    return None


def warn_of_open_file(key: str, path: Path, findings: Findings) -> None:
    """Warn of a file with a secret that every user can read."""
    try:
        is_open = bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return
    if is_open:
        findings.warning(key, f"{path} holds a secret and every user can read it", f"Run: chmod o-rwx {path}")
