"""Builds the compiled kernel.

BINLOG_RELAY_KERNEL=skip     no extension modules: the same text runs uncompiled
BINLOG_RELAY_KERNEL=require  a failed compilation fails the build
unset                        compiled where a C compiler is found, uncompiled otherwise
"""

import os

from setuptools import Extension, setup

MODULES = (
    "crc",
    "inference",
    "format_description",
    "event_table",
    "stream_notes",
    "ingest",
    "edges",
    "frame",
    "gtid_keys",
    "gtid_skip",
    "gtids",
    "intervals",
    "row_event_types",
    "tables",
    "event_facts",
    "column_reader",
    "statement_words",
    "text_column",
    "event_columns",
    "transaction_batch",
    "transaction_counts",
    "transaction_columns",
    "digest",
    "statement_columns",
    "gtid_text",
    "json_text",
    "charset_text",
    "decimal_text",
    "temporal_text",
    "json_binary",
    "column_plans",
    "native_types",
    "real_text",
    "row_values",
    "batch_texts",
    "row_batch",
    "row_tables",
    "row_writer",
    "row_columns",
)

# What a module includes beside the leaf operations.
HEADERS = {"real_text": ("protocol/kernel/real_text.h",)}

wish = os.environ.get("BINLOG_RELAY_KERNEL", "")
if wish not in ("", "skip", "require"):
    raise SystemExit(f"BINLOG_RELAY_KERNEL is {wish!r}; it takes 'skip', 'require' or nothing")

extensions: list[Extension] = []
if wish != "skip":
    from Cython.Build import cythonize

    extensions = cythonize(
        [
            Extension(
                f"protocol.kernel.{name}",
                [f"protocol/kernel/{name}.py"],
                depends=["protocol/kernel/native.h", "protocol/kernel/native.pxd", *HEADERS.get(name, ())],
                include_dirs=["protocol/kernel"],
                extra_compile_args=["-O3", "-Wno-unused-function"],
                optional=wish != "require",
            )
            for name in MODULES
        ],
        build_dir="build/cython",
        language_level=3,
    )

setup(ext_modules=extensions)
