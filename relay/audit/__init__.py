"""Audits: questions to an archive that Spark answers, each with a report, and their shared parts."""
