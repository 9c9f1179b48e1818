"""The reasons why a source could not be entered: what happened, and the next step. For the log, the status, and the failover."""

import errno
import os
from dataclasses import dataclass
from typing import Final

import pymysql.err

from protocol.auth.client_login import (
    CLEARTEXT,
    ClientLogin,
    LoginWithheld,
    PasswordWithheld,
    Peer,
    PluginNotOffered,
)
from protocol.auth.greeting import why_no_greeting
from protocol.errors import ErrorCode
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls

AUTHENTICATION_ERRORS: Final = {
    ErrorCode.ER_DBACCESS_DENIED_ERROR, ErrorCode.ER_ACCESS_DENIED_ERROR, ErrorCode.ER_HOST_NOT_PRIVILEGED,
    ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR, ErrorCode.ER_NOT_SUPPORTED_AUTH_MODE, ErrorCode.ER_SERVER_IS_IN_SECURE_AUTH_MODE,
    ErrorCode.ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ErrorCode.ER_MUST_CHANGE_PASSWORD, ErrorCode.ER_MUST_CHANGE_PASSWORD_LOGIN,
    ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD, ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED, ErrorCode.ER_SECURE_TRANSPORT_REQUIRED,
    ErrorCode.ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK, ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB,
}  # fmt: skip
# The client itself reports these; a server sends other numbers.
_OF_THE_CLIENT: Final = (ErrorCode.CR_CONN_HOST_ERROR, ErrorCode.CR_SERVER_LOST)
_SHOWN_BYTES: Final = 24
_SOURCE: Final = SourceTls()
"""Whose server it is, and its section, where nothing else is said."""
ITS_LOG: Final = "Look at the error log of the server there."
# These are errors that a server sends in place of a greeting, or of a login's verdict, and that a later try may not meet.
_FOR_NOW: Final[dict[int, str]] = {
    ErrorCode.ER_CON_COUNT_ERROR: "Raise max_connections there, or end connections that nobody needs.",
    ErrorCode.ER_SERVER_SHUTDOWN: "It is going down; it is tried again.",
    ErrorCode.ER_HOST_IS_BLOCKED: "On the source: FLUSH HOSTS, or mysqladmin flush-hosts; its error log names the failures.",
    ErrorCode.ER_TOO_MANY_USER_CONNECTIONS: "Raise max_user_connections there, or the account's own limit.",
    ErrorCode.ER_USER_LIMIT_REACHED: "Raise the account's limits there (ALTER USER … WITH MAX_USER_CONNECTIONS …).",
}

_ADVICE: Final = {
    "mysql_old_password": "Give the account a password of the kind used since 4.1: SET old_passwords = 0, SET PASSWORD."
}
_OTHER_PLUGIN: Final = (
    "Give it an account with mysql_native_password, caching_sha2_password or sha256_password; on MariaDB also ed25519."
)


@dataclass(slots=True)
class Entering:
    """The progress of a connection: accepted by the other side, greeted, and its first bytes until then."""

    is_taken: bool = False
    is_greeted: bool = False
    first: bytes = b""

    @property
    def shown(self) -> str:
        """The first bytes, for a person."""
        more = "…" if len(self.first) > _SHOWN_BYTES else ""
        return f"{self.first[:_SHOWN_BYTES]!r}{more}"


def server_text(error: BaseException) -> str:
    """Return number and text of an error that a server sent."""
    args = error.args
    return f"{args[0]} {args[1]}" if len(args) > 1 else str(error)


def refused_entry(
    error: pymysql.err.Error, where: str, user: str, entering: Entering, *, tls: bool, of: SourceTls = _SOURCE
) -> UpstreamError:
    """Return the meaning of an error of the client or the server. `tls` says whether the connection was meant to use it, `of` whose
    server it is."""
    number = error.args[0] if error.args else 0
    if number == ErrorCode.ER_SECURE_TRANSPORT_REQUIRED:
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"{of.who} {where} takes connections over TLS only: {server_text(error)}",
            _verified(of.section),
            name="tls_required_by_source",
            number=number,
        )
    if number in AUTHENTICATION_ERRORS:
        hint = "" if tls else f" With REQUIRE SSL or require_secure_transport there, {of.section}.ssl_mode is needed."
        grants = f"On the source: CREATE USER '{user}'@'<relay host>' …; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO it."
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"{of.who} {where} refuses the user {user!r}: {server_text(error)}",
            (f"Check {of.section}.user and its password. " if number == ErrorCode.ER_ACCESS_DENIED_ERROR else "")
            + (grants if of.who == _SOURCE.who else "")
            + hint,
            number=number,
        )
    if isinstance(error, pymysql.err.InternalError):
        # The client raises this for bytes that are no MySQL packet; an error that the server sent is an OperationalError.
        return other_protocol(where, entering, server_text(error))
    if number not in _OF_THE_CLIENT:
        text = f"{of.who} {where} takes no connection of ours: {server_text(error)}"
        return UpstreamError(FailureKind.NETWORK, text, _FOR_NOW.get(number, ITS_LOG))
    return _lost(of, where, error.__cause__, entering)


def _lost(of: SourceTls, where: str, cause: BaseException | None, entering: Entering) -> UpstreamError:
    named = f"{of.who} {where}"
    if isinstance(cause, OSError) and cause.errno == errno.EBADF:
        # uvloop has closed the socket of a connection that was reset, and the client still sets its options.
        cause = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    if not entering.is_greeted and (why := why_no_greeting(entering.first)) is not None:
        return other_protocol(where, entering, why)
    # A reset may precede any use of a connection that was accepted.
    if not entering.is_taken and not isinstance(cause, ConnectionResetError | BrokenPipeError):
        return UpstreamError(
            FailureKind.NETWORK,
            f"{named} cannot be reached: {_system_text(cause)}",
            f"Check {of.section}.host, {of.section}.port and the firewall, and that the server runs.",
        )
    reset = f" ({_system_text(cause)})" if isinstance(cause, OSError) else ""
    if entering.is_greeted:
        text = f"{named} closed the connection during the login{reset}"
        return UpstreamError(FailureKind.NETWORK, text, ITS_LOG)
    if entering.first:
        text = f"{named} closed the connection in the middle of its greeting, {entering.shown}{reset}"
        return UpstreamError(FailureKind.NETWORK, text, f"{ITS_LOG} Or another service listens there.")
    return UpstreamError(
        FailureKind.NETWORK,
        f"{named} took the connection and closed it without a word{reset}",
        "It may be starting or going down, a proxy may have no server behind it, or host and port are of another service.",
    )


def login_refusal(error: LoginWithheld, login: ClientLogin, where: str, tls: SourceTls) -> UpstreamError:
    """Return the error for a login that this side refused to continue. It names no secret."""
    if isinstance(error, PluginNotOffered):
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"{tls.who} {where} asks for the authentication plugin {error.what!r}, which the relay does not take part in",
            _ADVICE.get(error.what, _OTHER_PLUGIN),
            name="plugin_unavailable",
            number=ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD,
        )
    if isinstance(error, PasswordWithheld):
        text = (
            f"{tls.who} {where} asks for the password itself ({error.what}), and nothing proves that it is the server: "
            f"{login.peer.value}"
        )
        advice = _allowing(error.what, login.peer, tls)
    else:
        text = f"the password is too long to be encrypted with {tls.section}.public_key"
        advice = _verified(tls.section)
    return UpstreamError(
        FailureKind.AUTHENTICATION, text, advice, name="password_withheld", number=ErrorCode.CR_AUTH_PLUGIN_ERR
    )


def _verified(section: str) -> str:
    """Return the advice to verify the server. `section` is that of the configuration, or the option of a command."""
    if section.startswith("--"):
        return f"Add ,ssl_mode=verify_ca,ssl_ca=FILE to the value of {section}."
    return f'Write {section}.ssl_mode = "verify_ca" with {section}.ssl_ca.'


def _allowing(plugin: str, peer: Peer, tls: SourceTls) -> str:
    here = tls.section
    advice = f"{_verified(here)} MySQL has it as ca.pem in its data directory."
    if plugin != CLEARTEXT:
        key = f"{here}.public_key (public_key.pem there)"
        if tls.public_key is not None and peer is Peer.ENCRYPTED:
            key = f"{here}.public_key, which counts without TLS only"
        advice += f' Or ssl_mode = "disabled" with {key}.'
    return f"{advice} See SOURCE.md, The password."


def silent(where: str, limit_s: float, entering: Entering, who: str = _SOURCE.who) -> UpstreamError:
    """Return the error for a timeout."""
    if not entering.is_greeted and (why := why_no_greeting(entering.first)) is not None:
        return other_protocol(where, entering, why)
    text = f"{who} {where} did not answer within {limit_s:g} s"
    if not entering.is_taken:
        return UpstreamError(
            FailureKind.NETWORK, f"{text}: no connection came about", "Check host, port and the network between."
        )
    if entering.is_greeted:
        return UpstreamError(FailureKind.NETWORK, f"{text} to the login", f"It may be overloaded. {ITS_LOG}")
    so_far = f"it began with {entering.shown} and went no further" if entering.first else "it sent nothing"
    return UpstreamError(
        FailureKind.NETWORK,
        f"{text}: it took the connection, and {so_far}",
        "It hangs or is overloaded; or this is the port of a service that waits for its client to speak, as HTTP does.",
    )


def other_protocol(where: str, entering: Entering | None, why: str) -> UpstreamError:
    """Return the error that the other side is no MySQL server. `why` says which bytes are impossible. `entering` is None if the
    progress was not observed."""
    if entering is None:
        text = f"{where} answers with something that is not the MySQL protocol: {why}"
        advice = "Check host and port: another service listens there, or a proxy answers in the server's place."
    elif entering.is_greeted:
        text = f"{where} answers the login with something that is not the MySQL protocol: {why}"
        advice = f"A proxy between may do that. {ITS_LOG}"
    else:
        why = why_no_greeting(entering.first) or f"its greeting cannot be read, {why}"
        text = f"{where} answers with something that is not the MySQL protocol: {why}; it begins with {entering.shown}"
        advice = "Check source.host and source.port: another service listens there, or a proxy answers in the server's place."
    return UpstreamError(FailureKind.SETUP, text, advice, name="not_mysql_protocol")


def _system_text(cause: BaseException | None) -> str:
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    # Each of several addresses has its own error, and an unknown name has a number of another kind.
    return str(getattr(cause, "strerror", None) or cause or "the connection ended")
