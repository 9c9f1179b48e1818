"""Passwords of a configuration: in the file itself, in a file of their own, or in the environment."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from relay.config.problems import Findings
from relay.config.source_list import own_values, sources_in
from relay.config.toml_text import accounts_in

_SOURCE_FORMS: Final = ("password", "password_file", "password_env")
_ACCOUNT_FORMS: Final = (*_SOURCE_FORMS, "password_hash")


def password_text(password: SecretStr | None, password_file: Path | None, password_env: str | None) -> str | None:
    """The password from whichever form was given.

    Raises: OSError for a file that cannot be read, KeyError for a variable that is not set.
    """
    if password is not None:
        return password.get_secret_value()
    if password_file is not None:
        # Editors end a file with a newline; no other white space is taken off, passwords may hold it.
        return password_file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    if password_env is not None:
        return os.environ[password_env]
    return None


def check_passwords(data: Mapping[str, Any], config_path: Path, findings: Findings) -> None:
    """Forms that are missing, doubled or unreadable; on the raw text, so that other mistakes hide nothing."""
    for key, section, forms in _sections_with_secrets(data):
        _check_section(key, section, forms, config_path, findings)


def _sections_with_secrets(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    for key, source, first in sources_in(data):
        own = own_values(source, first)
        if source.get("kind") == "server" and (first is None or any(form in own for form in _SOURCE_FORMS)):
            yield key, own, _SOURCE_FORMS
    for key, account in accounts_in(data):
        yield key, account, _ACCOUNT_FORMS


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
    variable = section.get("password_env")
    if isinstance(variable, str) and variable not in os.environ:
        what = f"the environment has no variable {variable}"
        findings.problem(f"{key}.password_env", what, "Set it before starting")


def warn_of_open_file(key: str, path: Path, findings: Findings) -> None:
    """A file with a secret that every user can read."""
    try:
        is_open = bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return
    if is_open:
        findings.warning(key, f"{path} holds a secret and every user can read it", f"Run: chmod o-rwx {path}")
