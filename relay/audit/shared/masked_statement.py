"""The statement behind a row, as a report may show it: in statements that are about passwords strings are masked."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

# Of what a server logs as a row's statement; in Java's spelling.
_ABOUT_SECRETS: Final = "(?i)password|identified"
_STRINGS: Final = r"""'(?:[^'\\]++|\\.|'')*+(?:'|\\?$)|"(?:[^"\\]++|\\.|"")*+(?:"|\\?$)"""


def masked_statement() -> Column:
    """The column `statement`."""
    masked = F.regexp_replace("statement", f"(?s){_STRINGS}", "'***'")
    return F.when(F.col("statement").rlike(_ABOUT_SECRETS), masked).otherwise(F.col("statement"))
