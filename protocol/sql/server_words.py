"""The words that one of MySQL and MariaDB reserves and the other, or an older one, accepts as a bare name.

Sources: MySQL 5.6.24 and 9.7.4, MariaDB 10.11.19 and 11.8.9 were asked for every keyword of all four, as the name of a column
(`tests/interop/test_server_words.py`); the series between: MySQL manuals, Keywords and Reserved Words. EVERY: MySQL 5.6, MariaDB
10.11 and those before. Words that all of them reserve are not listed.
"""

from typing import Final

from protocol.sql.server_version import EVERY, KnownSince

_ROWS: Final = (
    (KnownSince(EVERY, None, None), "DATABASE GET IO_AFTER_GTIDS IO_BEFORE_GTIDS OPTION SCHEMA"),
    (KnownSince(EVERY, (8, 4), EVERY, (11, 8)), "MASTER_SSL_VERIFY_SERVER_CERT"),
    (KnownSince((5, 7), None, None), "GENERATED OPTIMIZER_COSTS STORED VIRTUAL"),
    (KnownSince((8, 0), None, None), """CUBE CUME_DIST DENSE_RANK EMPTY FIRST_VALUE FUNCTION GROUPING GROUPS JSON_TABLE LAG LAST_VALUE
     LATERAL LEAD NTH_VALUE NTILE OF PERCENT_RANK RANK ROW SYSTEM WINDOW"""),
    (KnownSince((8, 0), None, EVERY), "EXCEPT INTERSECT OVER RECURSIVE ROWS ROW_NUMBER"),
    (KnownSince((8, 4), None, None), "QUALIFY TABLESAMPLE"),
    (KnownSince((8, 4), (9, 0), None), "MANUAL PARALLEL"),
    (KnownSince((9, 0), None, None), "EXTERNAL LIBRARY"),
    (KnownSince(None, None, EVERY), """CURRENT_ROLE DELETE_DOMAIN_ID DO_DOMAIN_IDS IGNORE_DOMAIN_IDS MASTER_DEMOTE_TO_REPLICA
     MASTER_DEMOTE_TO_SLAVE OFFSET PAGE_CHECKSUM PARSE_VCOL_EXPR PORTION REF_SYSTEM_ID RETURNING STATS_AUTO_RECALC STATS_PERSISTENT
     STATS_SAMPLE_PAGES"""),
    (KnownSince(None, None, (11, 0)), "SQL_AFTER_GTIDS SQL_BEFORE_GTIDS VECTOR"),
)  # fmt: skip
RESERVED_WORDS: Final = {word: row for row, words in _ROWS for word in words.split()}
"""The reserved words by the word in upper case."""

ONLY_MYSQLS: Final = frozenset(
    word for word, known in RESERVED_WORDS.items() if known.in_mysql((9, 7)) and not known.in_mariadb((10, 11))
)
"""Names that need no quotation marks in MariaDB 10.11, but do in MySQL 9.7."""
NEW_IN_MYSQL: Final = frozenset(
    word for word, known in RESERVED_WORDS.items() if known.mysql_since not in (None, EVERY)
)
"""Names that need no quotation marks in MySQL 5.6, but do in a newer one."""
NEW_IN_MARIADB: Final = frozenset(
    word for word, known in RESERVED_WORDS.items() if known.in_mariadb((11, 8)) and not known.in_mysql((5, 6))
)
"""Names that need no quotation marks in MySQL 5.6, but do in MariaDB 11.8."""
