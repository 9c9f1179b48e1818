"""The translation of a transaction of a MariaDB source for replicas of MySQL."""
