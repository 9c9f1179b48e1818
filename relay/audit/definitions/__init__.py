"""What statements changed in the tables of an archive: from where on a table is another one, and in which columns and keys."""
