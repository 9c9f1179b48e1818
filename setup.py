"""Builds the compiled kernel.

BINLOG_RELAY_KERNEL=skip     no extension modules: the same text runs uncompiled
BINLOG_RELAY_KERNEL=require  a failed compilation fails the build
unset                        compiled where a C compiler is found, uncompiled otherwise
"""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path

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
    "kernel.event_check",
    "kernel.gtid_head",
    "kernel.gtid_filter",
    "kernel.gtid_scan",
    "kernel.intervals",
    "columns.tables",
    "columns.column_batch",
    "columns.column_reader",
    "columns.digest",
    "columns.gtid_text",
    "columns.event_columns",
    "columns.statement_columns",
    "columns.transaction_columns",
    "columns.rows.table_plans",
    "columns.rows.value_columns",
    "columns.rows.row_values",
    "columns.rows.row_batch",
    "columns.rows.row_writer",
    "columns.rows.row_columns",
    "columns.text.json_text",
    "columns.text.scalar_text",
    "columns.text.charset_text",
    "columns.text.json_binary",
    "dependencies.write_sets",
    "dependencies.group_waits",
    "views.plain_changes",
    "views.query_status",
    "views.known_statements",
    "views.packed_numbers",
    "views.view_copy",
    "views.mariadb_copy",
)

# What a module includes beside the leaf operations.
HEADERS = {"columns.text.scalar_text": ("protocol/columns/text/real_text.h",)}

# What Cython would otherwise put into each module that has a buffer: three quarters of the C text. It has no .py.
SHARED = "protocol.kernel.cython_shared"

wish = os.environ.get("BINLOG_RELAY_KERNEL", "")
if wish not in ("", "skip", "require"):
    raise SystemExit(f"BINLOG_RELAY_KERNEL is {wish!r}; it takes 'skip', 'require' or nothing")


def extension(name: str, source: str, depends: tuple[str, ...] = ()) -> Extension:
    """One compiled module. Debug information is left out: it costs a quarter of the time, and nobody steps through C."""
    return Extension(
        name,
        [source],
        depends=["protocol/kernel/native.h", *depends],
        include_dirs=["protocol/kernel", "protocol/columns/text"],
        extra_compile_args=["-O3", "-g0", "-Wno-unused-function"],
        optional=wish != "require",
    )


def can_compile() -> bool:
    """Whether there is a C compiler with Python's headers. Setuptools ends the build where the program is missing, although a
    module is optional."""
    from distutils.ccompiler import new_compiler
    from distutils.sysconfig import customize_compiler

    with tempfile.TemporaryDirectory() as place:
        probe = Path(place) / "probe.c"
        probe.write_text("#include <stdlib.h>\n#include <Python.h>\n", encoding="ascii")
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(probe)], output_dir=place, include_dirs=[sysconfig.get_path("include")])
        except Exception as error:
            uncompiled = "binlog-relay is installed uncompiled: it works, many times slower. BINLOG_RELAY_KERNEL=require refuses that."
            print(f"No C compiler with Python's headers ({error}). {uncompiled}", file=sys.stderr)  # noqa: T201
            return False
    return True


def extensions(jobs: int) -> list[Extension]:
    """All of them, as C: translated from Python where that is not done yet."""
    from Cython.Build import cythonize

    modules = [
        extension(f"protocol.{name}", f"protocol/{name.replace('.', '/')}.py", HEADERS.get(name, ()))
        for name in MODULES
    ]
    shared = extension(SHARED, f"{SHARED.replace('.', '/')}.c")
    return cythonize(
        [*modules, shared],
        nthreads=jobs,
        build_dir="build/cython",
        language_level=3,
        shared_utility_qualified_name=SHARED,
    )


# Asked for here, since processes that cythonize starts may run this text again under another name.
if __name__ == "__main__":
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setup(
        ext_modules=extensions(jobs) if wish == "require" or (wish != "skip" and can_compile()) else [],
        options={"build_ext": {"parallel": jobs}},
    )
