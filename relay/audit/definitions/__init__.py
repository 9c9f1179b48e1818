"""The changes that statements made to the tables of an archive: from which place a table differs, and in which columns and keys."""
