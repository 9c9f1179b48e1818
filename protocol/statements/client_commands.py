"""Commands of the protocol that no relay can do, with the errors that servers have for them."""

from protocol.commands import Command
from protocol.errors import ErrorCode, StatementRefused
from protocol.statements.databases import MOST_NAME_BYTES
from protocol.statements.session.refusals import no_database, no_such_table, not_supported, privilege_needed
from protocol.statements.session.session import StatementSession


def refused_command(code: int, body: bytes, session: StatementSession) -> StatementRefused:
    """Return the error for this command; ER_UNKNOWN_COM_ERROR for those that servers do not know either."""
    if code == Command.COM_FIELD_LIST:
        table = session.encoding.decode(body[:MOST_NAME_BYTES].partition(b"\0")[0])
        return no_database() if session.database is None else no_such_table(session.database, table)
    if code == Command.COM_STMT_FETCH:
        # Cursors are not opened: all rows come with the statement's answer.
        number = int.from_bytes(body[:4], "little")
        text = f"Unknown prepared statement handler ({number}) given to {Command(code).name}"
        return StatementRefused(ErrorCode.ER_UNKNOWN_STMT_HANDLER, text)
    if code == Command.COM_SHUTDOWN:
        if not session.is_admin:
            return privilege_needed("SHUTDOWN")
        return not_supported("COM_SHUTDOWN", "end it by its service manager, or by SIGTERM")
    if code == Command.COM_DEBUG:
        return privilege_needed("SUPER")
    return StatementRefused(ErrorCode.ER_UNKNOWN_COM_ERROR, "Unknown command")
