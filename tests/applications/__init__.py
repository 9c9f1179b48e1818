"""Applications from Debian's packages behind a view: their schemas and statements, on an old source and a MySQL 9.7."""
