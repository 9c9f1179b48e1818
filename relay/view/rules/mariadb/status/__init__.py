"""The session of a MariaDB's statements as MySQL reads it: status variables, modes, character sets and collations."""
