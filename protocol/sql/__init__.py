"""The SQL of MySQL and MariaDB: what is a fact about a server's language, and has one address here."""
