"""[[replica]]: an account at a replica, which is asked how far it has applied."""

from pydantic import SecretStr

from relay.config.server_security import ServerSecurity
from relay.config.text.passwords import password_text
from relay.config.values import HostName, NonEmpty, PathText, Port, UserName


class ReplicaSection(ServerSecurity):
    """An account at a replica. With it the relay asks the replica every 5 s how far it has applied what it was sent."""

    host: HostName
    """Name or address of the replica. Example: `"db-new.example"`"""
    port: Port = 3306
    """The port of the replica. Example: `3306`"""
    user: UserName
    """The account at the replica. It needs REPLICATION CLIENT; on MariaDB from 10.5 on SLAVE MONITOR. Example: `"relay_watch"`"""
    password: SecretStr | None = None
    """The password of this account, in clear. Write exactly one of `password`, `password_file`, `password_env`
    and `password_credential`. Example: `"secret"`"""
    password_file: PathText | None = None
    """A file that contains the password and nothing else. A newline at its end is not part of the password. It is read again for each
    connection. Example: `"/etc/binlog-relay/db-new.password"`"""
    password_env: NonEmpty | None = None
    """The name of an environment variable that holds the password. Example: `"REPLICA_WATCH_PASSWORD"`"""
    password_credential: NonEmpty | None = None
    """The name of a credential of the service that holds the password: `LoadCredential=` in the unit of systemd. Example:
    `"db-new.password"`"""

    @property
    def address(self) -> str:
        """The replica as status, page and metrics name it: HOST:PORT."""
        return f"{self.host}:{self.port}"

    def password_text(self) -> str:
        """Return the password in clear, read from its file or variable now.

        Raises: OSError for a file or credential that cannot be read, KeyError for a variable that is not set, UnicodeDecodeError.
        """
        return password_text(self.password, self.password_file, self.password_env, self.password_credential) or ""
