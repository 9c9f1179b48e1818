# Sourced by deploy/prepare.sh: installs Debian packages of today's package lists.
# shellcheck shell=bash

# The lists that a machine has may be months old: what they name is gone from the mirror, or is not what a fresh machine
# gets. They are fetched once a run; deploy/servers reads the variable. Where that fails, the old ones may still do.
refresh_package_lists() {
    [ -z "${BINLOG_RELAY_PACKAGE_LISTS:-}" ] || return 0
    DEBIAN_FRONTEND=noninteractive apt-get update -q ||
        echo "apt-get update failed: packages are taken from the lists that are here" >&2
    export BINLOG_RELAY_PACKAGE_LISTS=fetched
}

# As root only; "what for" comes first.
apt_install() {
    local purpose=$1
    shift
    command -v apt-get >/dev/null || { echo "$purpose is missing, and there is no apt-get here to install $* with" >&2; return 1; }
    [ "$(id -u)" = 0 ] || { echo "$purpose is missing: run \`apt-get install $*\` as root" >&2; return 1; }
    say "installing $* ($purpose)"
    refresh_package_lists
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}
