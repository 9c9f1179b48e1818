"""A server and an account that an option of the command line names; the password is in a file."""

from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from relay.commands.outcome import CommandFailed
from relay.config import ServerSecurity, ServerSource, SslMode
from relay.config.text.problems import Findings
from relay.config.text.tls_files import check_server_files
from relay.config.text.toml_text import SERVER_FILES


def named_server(option: str, text: str) -> ServerSource:
    """Return the server of HOST[:PORT],USER,PASSWORD-FILE[,KEY=VALUE ...]: a key is one of `ServerSecurity`. Raises: CommandFailed."""
    parts = text.split(",")
    keys = dict(part.partition("=")[::2] for part in parts[3:])
    parts = parts[:3]
    host, _, port = (
        parts[0].rpartition(":") if ":" in parts[0] and not parts[0].endswith("]") else (parts[0], "", "3306")
    )
    host = host.removeprefix("[").removesuffix("]")
    if len(parts) != 3 or not all(parts) or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CommandFailed(f"{option}: write HOST:PORT,USER,FILE, where FILE holds the password.")
    wrong = keys.keys() - ServerSecurity.model_fields.keys()
    findings = Findings()
    check_server_files(option, keys, findings)
    if wrong or findings.problems:
        why = findings.problems[0] if findings.problems else f"there is no {', '.join(sorted(wrong))}"
        known = ", ".join(ServerSecurity.model_fields)
        raise CommandFailed(f"{option}: {why}. Behind FILE there may be {known}, each as ,KEY=VALUE.")
    given = {key: Path(value) if key in SERVER_FILES else value for key, value in keys.items()}
    try:
        return ServerSource.model_validate(
            {
                "host": host,
                "port": int(port),
                "user": parts[1],
                "password_file": Path(parts[2]),
                "server_id": 1,
                **given,
            }
        )
    except ValidationError:
        words = ", ".join(get_args(SslMode))
        raise CommandFailed(f"{option}: ssl_mode is one of {words}.") from None
