"""The applications, and the scripts of their packages that make their databases."""

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from tests.sql_verdicts.debian_schemas import statements_of, text_of, unpacked


class Application(NamedTuple):
    """An application. `scripts` are patterns of paths in its package, in the order in which they run in `database`."""

    name: str
    package: str
    scripts: tuple[str, ...]
    database: str = "application"


_DBCONFIG: Final = "usr/share/dbconfig-common/data"
_WIKI: Final = "usr/share/mediawiki"
_RADIUS: Final = "etc/freeradius/3.0/mods-config/sql"
APPLICATIONS: Final = (
    Application("Bacula", "bacula-director-mysql", (f"{_DBCONFIG}/bacula-director-mysql/install/mysql",)),
    Application("Cacti", "cacti", ("usr/share/cacti/conf_templates/cacti.sql",)),
    Application("ejabberd", "ejabberd", ("usr/share/ejabberd/sql/mysql.new.sql",)),
    Application("ejabberd, old schema", "ejabberd", ("usr/share/ejabberd/sql/mysql.sql",)),
    Application("FluxBB", "dokuwiki", ("var/lib/dokuwiki/lib/plugins/authpdo/_test/mysql/fluxbb.sql",)),
    Application(
        "FreeRADIUS",
        "freeradius-config",
        (
            f"{_RADIUS}/main/mysql/schema.sql",
            f"{_RADIUS}/main/mysql/process-radacct.sql",
            f"{_RADIUS}/main/mysql/extras/*/schema.sql",
            f"{_RADIUS}/[!m]*/mysql/schema.sql",
            f"{_RADIUS}/ippool/mysql/procedure-no-skip-locked.sql",
        ),
    ),
    Application("Gammu SMSD", "gammu-smsd", ("usr/share/doc/gammu-smsd/examples/mysql-legacy.sql",)),
    Application("Icinga DB", "icingadb", ("usr/share/icingadb/schema/mysql/schema.sql",)),
    Application("Icinga IDO", "icinga2-ido-mysql", (f"{_DBCONFIG}/icinga2-ido-mysql/install/mysql",)),
    Application("Icinga Web", "icingaweb2", ("usr/share/icingaweb2/schema/mysql.schema.sql",)),
    Application("Kamailio", "kamailio-mysql-modules", ("usr/share/kamailio/mysql/*-create.sql",)),
    Application("Kea DHCP", "kea-admin", ("usr/share/kea/scripts/mysql/dhcpdb_create.mysql",)),
    Application(
        "MediaWiki",
        "mediawiki",
        (
            f"{_WIKI}/maintenance/tables-generated.sql",
            f"{_WIKI}/extensions-core/OATHAuth/sql/mysql/tables-generated.sql",
            f"{_WIKI}/extensions-core/AbuseFilter/db_patches/mysql/tables-generated.sql",
        ),
    ),
    Application("MyBB", "dokuwiki", ("var/lib/dokuwiki/lib/plugins/authpdo/_test/mysql/mybb.sql",)),
    Application("OpenDMARC", "opendmarc", (f"{_DBCONFIG}/opendmarc/install/mysql",)),
    Application("phpMyAdmin", "phpmyadmin", ("usr/share/phpmyadmin/sql/create_tables.sql",)),
    Application(
        "PowerDNS",
        "pdns-backend-mysql",
        tuple(f"usr/share/pdns-backend-mysql/schema/{name}.mysql.sql" for name in ("schema", "enable-foreign-keys")),
    ),
    Application("Request Tracker", "request-tracker5", ("usr/share/request-tracker5/etc/schema.mysql",)),
    Application("Roundcube", "roundcube-core", (f"{_DBCONFIG}/roundcube/install/mysql",)),
    Application("rsyslog", "rsyslog-mysql", (f"{_DBCONFIG}/rsyslog-mysql/install/mysql",)),
    Application(
        "Tango",
        "tango-db",
        ("usr/share/tango-db/create_db_tables.sql", "usr/share/tango-db/stored_proc.sql"),
        "tango",
    ),
    Application("Tiny Tiny RSS", "tt-rss", (f"{_DBCONFIG}/tt-rss/install/mysql",)),
    Application("WordPress", "dokuwiki", ("var/lib/dokuwiki/lib/plugins/authpdo/_test/mysql/wordpress.sql",)),
    Application(
        "Zabbix",
        "zabbix-server-mysql",
        tuple(f"usr/share/zabbix-server-mysql/{name}.sql.gz" for name in ("schema", "images", "data")),
    ),
    Application(
        "ZoneMinder",
        "zoneminder",
        ("usr/share/zoneminder/db/zm_create.sql", "usr/share/zoneminder/db/triggers.sql"),
    ),
)


def schema_of(application: Application) -> Iterator[str]:
    """Yield the statements of its scripts. Raises: ServerUnavailable; FileNotFoundError."""
    tree = unpacked(application.package)
    for pattern in application.scripts:
        paths = sorted(tree.glob(pattern))
        if not paths:
            raise FileNotFoundError(tree / pattern)
        yield from chain.from_iterable(statements_of(text_of(path)) for path in paths)
