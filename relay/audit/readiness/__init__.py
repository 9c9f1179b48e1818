"""The consequences of an old source's statements, tables and events for a newer replica: checks without Spark, one text at a time."""
