"""Under what a MariaDB's statements ran, as MySQL reads it: status variables, modes, character sets and collations."""
