"""Builds the compiled kernel.

BINLOG_RELAY_KERNEL=skip     no extension modules: the same text runs uncompiled
BINLOG_RELAY_KERNEL=require  a failed compilation fails the build
unset                        compiled where a C compiler is found, uncompiled otherwise
"""

import os

from setuptools import Extension, setup

MODULES = (
    "kernel.crc",
    "kernel.inference",
    "kernel.stream_format",
    "kernel.event_table",
    "kernel.stream_notes",
    "kernel.ingest",
    "kernel.edges",
    "kernel.frame",
    "kernel.gtid_head",
    "kernel.gtid_filter",
    "kernel.gtid_scan",
    "kernel.intervals",
    "columns.row_event_types",
    "columns.tables",
    "columns.event_facts",
    "columns.column_reader",
    "columns.statement_words",
    "columns.text_column",
    "columns.event_columns",
    "columns.transactions.transaction_batch",
    "columns.transactions.transaction_counts",
    "columns.transactions.transaction_columns",
    "columns.digest",
    "columns.statement_columns",
    "columns.gtid_text",
    "columns.text.json_text",
    "columns.text.charset_text",
    "columns.text.decimal_text",
    "columns.text.temporal_text",
    "columns.text.json_binary",
    "columns.rows.column_plans",
    "columns.text.native_types",
    "columns.text.real_text",
    "columns.rows.row_values",
    "columns.batch_texts",
    "columns.rows.row_batch",
    "columns.rows.row_tables",
    "columns.rows.row_writer",
    "columns.rows.row_columns",
)

# What a module includes beside the leaf operations.
HEADERS = {"columns.text.real_text": ("protocol/columns/text/real_text.h",)}

wish = os.environ.get("BINLOG_RELAY_KERNEL", "")
if wish not in ("", "skip", "require"):
    raise SystemExit(f"BINLOG_RELAY_KERNEL is {wish!r}; it takes 'skip', 'require' or nothing")

extensions: list[Extension] = []
if wish != "skip":
    from Cython.Build import cythonize

    extensions = cythonize(
        [
            Extension(
                f"protocol.{name}",
                [f"protocol/{name.replace('.', '/')}.py"],
                depends=["protocol/kernel/native.h", "protocol/kernel/native.pxd", *HEADERS.get(name, ())],
                include_dirs=["protocol/kernel", "protocol/columns/text"],
                extra_compile_args=["-O3", "-Wno-unused-function"],
                optional=wish != "require",
            )
            for name in MODULES
        ],
        build_dir="build/cython",
        language_level=3,
    )

setup(ext_modules=extensions)
