"""What an old source's statements, tables and events mean to a newer replica: checks without Spark, one text at a time."""
