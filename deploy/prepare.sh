# Sourced by deploy/demo and tests/run, from the top of the repository, with PROGRAM set: makes .venv with the project in
# it, the kernel compiled where a C compiler can be had. What is there already is kept.
# shellcheck shell=bash

VENV=$PWD/.venv

# What Debian installs for root, such as debootstrap and servers, is there, and not on the PATH of every root.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; exit 1; }

# shellcheck source=deploy/debian_packages.sh
. deploy/debian_packages.sh

# ---- Python ------------------------------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name
    for name in python3 python3.11 python3.12 python3.13 python3.14; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || ! new_enough "$VENV/bin/python"; then
    PYTHON=$(find_python) || { apt_install "Python" python3 python3-venv && PYTHON=$(find_python); } ||
        die "no Python of at least 3.11: install one and put it on PATH"
    # Debian keeps the part of venv that installs pip in a package of its own.
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || apt_install "Python's venv" python3-venv ||
        die "$PYTHON cannot make virtual environments"
    say "making .venv with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV" || die "making $VENV failed"
fi
export PATH=$VENV/bin:$PATH
export PIP_DISABLE_PIP_VERSION_CHECK=1

# ---- the project, its tools, its kernel --------------------------------------------------------------------------

has_compiler() {
    { command -v cc || command -v gcc || command -v clang; } >/dev/null &&
        python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' &&
        echo '#include <stdlib.h>' | "$(command -v cc || command -v gcc || command -v clang)" -E - >/dev/null 2>&1
}

if [ -z "${BINLOG_RELAY_KERNEL:-}" ]; then
    if has_compiler || { apt_install "a C compiler with Python's headers" gcc libc6-dev python3-dev && has_compiler; }; then
        export BINLOG_RELAY_KERNEL=require
    else
        echo "no C compiler with Python's headers: the kernel runs uncompiled, slowly and correctly"
    fi
fi

# The install is done again only when something that it reads has changed, or a compiled module is gone.
fingerprint() {
    { python --version; echo "$PWD ${BINLOG_RELAY_KERNEL:-}"
      cat pyproject.toml setup.py requirements-dev.lock
      find protocol/kernel protocol/columns protocol/views protocol/dependencies -name '*.py' -o -name '*.pxd' -o -name '*.h' | sort | xargs cat
      find protocol/kernel protocol/columns protocol/views protocol/dependencies -name '*.so' -printf '%f %s\n' | sort; } | python -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

locked_on=$(sed -n '1s/.* on //p' requirements-dev.lock)
[ $(($(date +%s) - $(date -d "$locked_on" +%s 2>/dev/null || date +%s))) -lt $((60 * 86400)) ] ||
    echo "requirements-dev.lock is of $locked_on, older than 60 days: deploy/lock --upgrade looks for newer versions"

STAMP=$VENV/.binlog-relay-installed
if [ "$(cat "$STAMP" 2>/dev/null)" != "$(fingerprint)" ]; then
    say "installing the project in .venv (kernel: ${BINLOG_RELAY_KERNEL:-uncompiled})"
    rm -f "$STAMP"
    # What is locked, with its hashes; then the project itself, by the Cython and setuptools that are locked.
    python -m pip install --quiet --require-hashes -r requirements-dev.lock &&
        python -m pip install --quiet --no-deps --no-build-isolation --editable . ||
        die "installing the project failed; the reason is above"
    fingerprint >"$STAMP"
fi

