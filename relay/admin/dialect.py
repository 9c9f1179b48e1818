"""The words of the console in the style of a server's flavour and version."""

from dataclasses import dataclass

from protocol.statements import SourceFacts, Words


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of the version that a client is shown. `words`: those of its statement."""

    flavour: str
    version: tuple[int, ...]
    words: Words = Words.MASTER_SLAVE

    @classmethod
    def of(cls, facts: SourceFacts, words: Words = Words.MASTER_SLAVE) -> "Dialect":
        """Return the dialect for an answer to a client that sees `facts`."""
        return cls(facts.flavour, facts.version_numbers, words)

    @property
    def is_mariadb(self) -> bool:
        """True if a MariaDB server is presented."""
        return self.flavour == "mariadb"

    def is_mysql(self, *since: int) -> bool:
        """Return whether a MySQL server of this version or a later one is presented."""
        return self.flavour == "mysql" and self.version >= since

    @property
    def says_source(self) -> bool:
        """True if states and columns say source and replica: MySQL from 8.0.22 on (8.0.26 in states), newer words used."""
        return self.words is Words.SOURCE_REPLICA and not self.is_mariadb

    @property
    def source_word(self) -> str:
        """The word for the source in a state text."""
        return "source" if self.is_mysql(8, 0, 26) else "master"

    @property
    def replica_word(self) -> str:
        """The word for the replica in a state text."""
        return "replica" if self.is_mysql(8, 0, 26) else "slave"

    @property
    def waits_for_updates(self) -> str:
        """The words for what a connection waits for that has read everything."""
        if self.is_mysql(5, 7) or (self.is_mariadb and self.version >= (10, 2)):
            return "waiting for more updates"
        return "waiting for binlog to be updated"
