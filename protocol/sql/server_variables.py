"""Variables of MySQL 5.6 that newer servers do not have: a program that names one is refused (1193).

Sources: SHOW VARIABLES of MySQL 5.6.24 and 9.7.4 (`tests/interop/test_view_refusals.py` asks them).
"""

from typing import Final

REMOVED_VARIABLES: Final = frozenset((
    "avoid_temporal_upgrade", "binlogging_impossible_mode", "date_format", "datetime_format", "expire_logs_days", "have_crypt",
    "have_openssl", "have_ssl", "ignore_builtin_innodb", "ignore_db_dirs", "innodb_additional_mem_pool_size", "innodb_checksums",
    "innodb_file_format", "innodb_file_format_check", "innodb_file_format_max", "innodb_large_prefix",
    "innodb_locks_unsafe_for_binlog", "innodb_log_file_size", "innodb_log_files_in_group", "innodb_mirrored_log_groups",
    "innodb_stats_sample_pages", "innodb_support_xa", "innodb_undo_logs", "innodb_undo_tablespaces", "innodb_use_sys_malloc",
    "log_bin_use_v1_row_events", "log_warnings", "master_info_repository", "max_tmp_tables", "metadata_locks_cache_size",
    "metadata_locks_hash_instances", "multi_range_count", "myisam_repair_threads", "new", "old", "old_passwords",
    "query_cache_limit", "query_cache_min_res_unit", "query_cache_size", "query_cache_type", "query_cache_wlock_invalidate",
    "relay_log_info_file", "relay_log_info_repository", "secure_auth", "show_old_temporals", "simplified_binlog_gtid_recovery",
    "slave_rows_search_algorithms", "storage_engine", "sync_frm", "thread_concurrency", "time_format", "timed_mutexes",
    "tx_isolation", "tx_read_only",
))  # fmt: skip
"""The names in lower case."""
REMOVED_SYSTEM_TABLES: Final = frozenset(("event", "host", "proc"))
"""Tables of the schema mysql in 5.6 that the newest MySQL does not have, but for those with accounts: 1146."""
