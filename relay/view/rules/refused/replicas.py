"""The replicas of a view, as far as what they refuse depends on them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas of a view: their version, and what their operator accepts by name. `becomes_innodb`: tables without transactions are
    InnoDB's there."""

    version: tuple[int, int]
    accept: frozenset[str]
    becomes_innodb: bool = False
    is_of_mariadb: bool = False

    @property
    def title(self) -> str:
        """Their name for people."""
        return f"MySQL {self.version[0]}.{self.version[1]}"
