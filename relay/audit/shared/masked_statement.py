"""The statement of a row, as a report may show it: in statements about passwords strings are masked."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

# This finds them in what a server logs as a row's statement; it is in Java's spelling.
_ABOUT_SECRETS: Final = "(?i)password|identified"
_STRINGS: Final = r"""'(?:[^'\\]++|\\.|'')*+(?:'|\\?$)|"(?:[^"\\]++|\\.|"")*+(?:"|\\?$)"""


def masked_statement() -> Column:
    """Return the column `statement` with masked strings."""
    masked = F.regexp_replace("statement", f"(?s){_STRINGS}", "'***'")
    return F.when(F.col("statement").rlike(_ABOUT_SECRETS), masked).otherwise(F.col("statement"))
