"""The SQL of MySQL and MariaDB: every fact about a server's language has one address here."""
