"""Audits: questions to an archive that Spark answers, each with a report.

A job is a module here with `JOB`, a `Job`; its name stands in `JOBS`, so that the command line knows it without Spark.
"""

from typing import Final

JOBS: Final[dict[str, str]] = {
    "boundaries": "Whether the transaction boundaries in the events agree with each other and with the inference.",
}
"""Name -> what it tells, in a sentence."""
