"""Questions to an archive that Spark answers, each with a report, and what they stand on."""
