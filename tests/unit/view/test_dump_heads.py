"""Where a dump was taken, by its own first lines: of every program that writes them, and of nobody's who wishes us ill."""

import gzip
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.position import Position
from relay.view.seeding.dump_head import HEAD_BYTES, DumpHead, DumpPlace, DumpRefused
from relay.view.seeding.dump_place import dump_place
from relay.view.seeding.mydumper_metadata import is_metadata, metadata_place
from relay.view.seeding.sql_dump import sql_dump_place

PLACE = Position("mysql-bin.000002", 559)
SETTINGS = """\
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8 */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

"""
POSITION = "--\n-- Position to start replication or point-in-time recovery from\n--\n\n"
REPLICA = "--\n-- Position to start replication or point-in-time recovery from (the master of this slave)\n--\n\n"
NEW_REPLICA = (
    "--\n-- Position to start replication or point-in-time recovery from (the source for this replica)\n--\n\n"
)
DATA = """
--
-- Current Database: `shop`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET latin1 */;
INSERT INTO `t` VALUES (1,'
CHANGE MASTER TO MASTER_LOG_FILE=\\'mysql-bin.000009\\', MASTER_LOG_POS=4;
');
"""
OLD = "CHANGE MASTER TO MASTER_LOG_FILE='mysql-bin.000002', MASTER_LOG_POS=559;\n"
NEW = "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='mysql-bin.000002', SOURCE_LOG_POS=559;\n"


def heading(program: str, version: str) -> str:
    return (
        f"-- {program}  Distrib {version}, for Linux (x86_64)\n--\n-- Host: db-old    Database: shop\n"
        f"-- ------------------------------------------------------\n-- Server version\t{version}-log\n\n{SETTINGS}"
    )


HEADS = {
    "5.6, --master-data=2": heading("MySQL dump 10.13", "5.6.24") + POSITION + f"-- {OLD}" + DATA,
    "5.6, --master-data=1": heading("MySQL dump 10.13", "5.6.24") + POSITION + OLD + DATA,
    "5.7, GTIDs of its own": heading("MySQL dump 10.13", "5.7.44")
    + "SET @@SESSION.SQL_LOG_BIN= 0;\n\n--\n-- GTID state at the beginning of the backup \n--\n\n"
    + "SET @@GLOBAL.GTID_PURGED='3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';\n\n"
    + POSITION
    + f"-- {OLD}"
    + DATA,
    "8.0, --source-data=2": heading("MySQL dump 10.13", "8.0.36") + POSITION + f"-- {NEW}" + DATA,
    "9.7, --source-data=1": heading("MySQL dump 10.13", "9.7.4") + POSITION + NEW + DATA,
    "MariaDB, position and GTID": "/*M!999999\\- enable the sandbox mode */ \n"
    + heading("MariaDB dump 10.19-11.8.6-MariaDB,", "11.8.6-MariaDB")
    + POSITION
    + f"-- {OLD}"
    + "\n-- CHANGE MASTER TO MASTER_USE_GTID=slave_pos;\n"
    + DATA,
    "without other comments": SETTINGS + POSITION + OLD + DATA,
    "with line ends of Windows": (heading("MySQL dump 10.13", "5.6.24") + POSITION + OLD + DATA).replace("\n", "\r\n"),
    "head only, data behind it cut off": heading("MySQL dump 10.13", "5.6.24") + POSITION + OLD,
}
METADATA = {
    "up to 0.13": "Started dump at: 2020-01-01 00:00:00\nSHOW MASTER STATUS:\n\tLog: mysql-bin.000002\n\tPos: 559\n\tGTID:\n\n"
    "Finished dump at: 2020-01-01 00:00:01\n",
    "from 0.14 on": "# Started dump at: 2023-06-09 11:47:18\n[config]\nquote_character = BACKTICK\n\n[master]\n"
    "# Channel_Name = '' # It can be use to setup replication FOR CHANNEL\nFile = mysql-bin.000002\nPosition = 559\n"
    "Executed_Gtid_Set = \n\n[`shop`.`t`]\nRows = 2\nPosition = 7\n",
    "source": "# Started dump at: 2025-06-09 11:47:18\n[source]\n# Channel_Name = ''\nFile = mysql-bin.000002\n"
    "Position = 559\nExecuted_Gtid_Set = \n",
    "--source-data": '# Started dump at: 2025-06-09 11:47:18\n[source]\n#SOURCE_HOST = "db"\nexecuted_gtid_set = ""\n'
    'SOURCE_LOG_FILE = "mysql-bin.000002"\nSOURCE_LOG_POS = 559\n#SOURCE_AUTO_POSITION = {0|1}\n',
    "--source-data by GTID": '[source]\n#SOURCE_LOG_FILE = "mysql-bin.000002"\n#SOURCE_LOG_POS = 559\n',
}
BACKUPS = {
    "position": "mysql-bin.000002\t559\n",
    "and GTIDs": "mysql-bin.000002\t559\t3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7\n",
    "of MariaDB": "mysql-bin.000002\t559\t0-1-100\n",
}


def dumped(directory: Path, text: str, name: str = "dump.sql") -> Path:
    path = directory / name
    path.write_bytes(text.encode("latin-1"))
    return path


def refused(path: Path) -> str:
    with pytest.raises(DumpRefused) as caught:
        dump_place(path)
    return str(caught.value)


@pytest.mark.parametrize("name", HEADS)
def test_a_dump_of_sql_says_where_it_was_taken(tmp_path: Path, name: str) -> None:
    assert dump_place(dumped(tmp_path, HEADS[name])).position == PLACE


def test_what_is_told_besides_is_the_program_the_host_the_version_and_the_line(tmp_path: Path) -> None:
    path = dumped(tmp_path, HEADS["5.6, --master-data=2"])
    assert dump_place(path) == DumpPlace(PLACE, "mysqldump", path, 15, "db-old", "5.6.24-log")


@pytest.mark.parametrize("name", HEADS)
def test_a_packed_dump_says_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / "dump.sql.gz"
    path.write_bytes(gzip.compress(HEADS[name][:300].encode()) + gzip.compress(HEADS[name][300:].encode()))
    assert dump_place(path).position == PLACE


@pytest.mark.parametrize("name", METADATA)
def test_a_directory_of_mydumper_says_where_it_was_taken(tmp_path: Path, name: str) -> None:
    path = dumped(tmp_path, METADATA[name], "metadata")
    assert dump_place(tmp_path).position == dump_place(path).position == PLACE
    assert dump_place(tmp_path).made_by == "mydumper"


@pytest.mark.parametrize("name", BACKUPS)
@pytest.mark.parametrize("file", ["xtrabackup_binlog_info", "mariadb_backup_binlog_info"])
def test_a_directory_of_xtrabackup_says_where_it_was_taken(tmp_path: Path, name: str, file: str) -> None:
    dumped(tmp_path, BACKUPS[name], file)
    assert dump_place(tmp_path).position == PLACE


@pytest.mark.parametrize("words", [REPLICA, NEW_REPLICA])
@pytest.mark.parametrize("statement", [OLD, f"-- {OLD}", NEW])
def test_a_dump_with_the_position_of_a_replica_is_refused_by_name(tmp_path: Path, words: str, statement: str) -> None:
    text = refused(dumped(tmp_path, heading("MySQL dump 10.13", "5.6.24") + words + statement + DATA))
    assert "dump.sql, line 15" in text and "--dump-slave" in text and "--at mysql-bin.000002:559" in text


@pytest.mark.parametrize("statement", [OLD, f"-- {OLD}", NEW, f"-- {NEW}"])
def test_a_position_without_a_heading_may_be_of_a_replica_and_is_refused(tmp_path: Path, statement: str) -> None:
    """--dump-slave writes the same as --source-data, if --compact or --skip-comments takes the heading away."""
    text = refused(dumped(tmp_path, SETTINGS + statement + DATA))
    assert "dump.sql, line 5" in text and "--dump-slave" in text and "--at mysql-bin.000002:559" in text


@pytest.mark.parametrize("name", ["", "c1"])
def test_a_statement_that_names_a_connection_of_mariadb_is_of_a_replica(tmp_path: Path, name: str) -> None:
    statement = OLD.replace("MASTER TO", f"MASTER '{name}' TO")
    assert "own source" in refused(dumped(tmp_path, SETTINGS + POSITION + statement + DATA))


def test_a_statement_that_names_a_host_is_of_a_replica(tmp_path: Path) -> None:
    statement = "CHANGE MASTER TO MASTER_HOST='db-older', MASTER_PORT=3306, MASTER_LOG_FILE='mysql-bin.000002', MASTER_LOG_POS=559;"
    assert "'db-older'" in refused(dumped(tmp_path, SETTINGS + statement + DATA))


def test_the_position_of_a_mydumper_server_that_is_a_replica_is_refused(tmp_path: Path) -> None:
    replica = "SHOW SLAVE STATUS:\n\tHost: 10.0.0.1\n\tLog: mysql-bin.000009\n\tPos: 4\n"
    dumped(tmp_path, METADATA["up to 0.13"] + replica, "metadata")
    text = refused(tmp_path)
    assert "was a replica" in text and "mysql-bin.000002:559 is its own position" in text


@pytest.mark.parametrize("section", ["replication", "replication.c1", "Replication.a.b"])
@pytest.mark.parametrize(
    "fields",
    [
        "# relay_master_log_file = 'mysql-bin.000009'\n# exec_master_log_pos = 4\n# Executed_Gtid_Set = \n",
        'SOURCE_LOG_FILE = "mysql-bin.000009"\nSOURCE_LOG_POS = 4\n#SOURCE_AUTO_POSITION = {0|1}\n',
        "# Source_Host = '10.0.0.1'\n",
    ],
)
@pytest.mark.parametrize("server", ["from 0.14 on", "source", "--source-data"])
def test_a_channel_of_a_mydumper_server_shows_that_it_is_a_replica(
    tmp_path: Path, server: str, fields: str, section: str
) -> None:
    dumped(tmp_path, f"{METADATA[server]}\n[{section}]\n{fields}", "metadata")
    text = refused(tmp_path)
    assert "was a replica" in text and "mysql-bin.000002:559 is its own position" in text


def test_a_host_that_mydumper_tells_is_told(tmp_path: Path) -> None:
    dumped(tmp_path, METADATA["--source-data"], "metadata")
    assert dump_place(tmp_path).host == "db"


SLAVE_INFO = [
    "xtrabackup_slave_info",
    "mariadb_backup_slave_info",
    "xtrabackup_replica_info",
    "xtrabackup_slave_info.zst",
]


@pytest.mark.parametrize("name", SLAVE_INFO)
@pytest.mark.parametrize("own", ["xtrabackup_binlog_info", "mariadb_backup_binlog_info"])
def test_a_backup_of_a_replica_is_refused_though_it_has_a_position_of_its_own(
    tmp_path: Path, own: str, name: str
) -> None:
    path = dumped(tmp_path, BACKUPS["position"], own)
    dumped(tmp_path, OLD, name)
    for told in (tmp_path, path):
        text = refused(told)
        assert "was a replica" in text and name in text and "mysql-bin.000002:559 is its own position" in text


def test_an_empty_slave_info_is_of_a_server_that_is_no_replica(tmp_path: Path) -> None:
    dumped(tmp_path, BACKUPS["position"], "xtrabackup_binlog_info")
    dumped(tmp_path, "", "xtrabackup_slave_info")
    assert dump_place(tmp_path).position == PLACE


def test_a_backup_says_which_server_it_is_of(tmp_path: Path) -> None:
    path = dumped(tmp_path, BACKUPS["position"], "xtrabackup_binlog_info")
    assert (dump_place(path).server_id, dump_place(path).server_uuid) == (0, "")
    uuid = "74b64a5b-cfba-11e9-95d0-000c2994d425"
    dumped(tmp_path, f"# x\n[mysqld]\nserver_id=1000\n\nserver_uuid={uuid}\nmaster_key_id=0\n", "backup-my.cnf")
    assert (dump_place(path).server_id, dump_place(path).server_uuid) == (1000, uuid)
    dumped(tmp_path, "\0\1server_id=1\n", "backup-my.cnf")
    assert dump_place(path).server_id == 0


@pytest.mark.parametrize("name", SLAVE_INFO)
def test_what_xtrabackup_says_of_a_replica_is_refused(tmp_path: Path, name: str) -> None:
    dumped(tmp_path, OLD, name)
    assert "own source" in refused(tmp_path) and "own source" in refused(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (heading("MySQL dump 10.13", "5.6.24") + DATA, "--source-data=2"),
        ("", "--source-data=2"),
        (SETTINGS + OLD + OLD.replace("559", "560") + DATA, "line 6: line 5 says mysql-bin.000002:559, this line"),
        (SETTINGS + OLD.replace("mysql-bin.000002", "../../etc/passwd") + DATA, "no binlog file's name"),
        (SETTINGS + OLD.replace("mysql-bin.000002", "/var/lib/mysql-bin.000002") + DATA, "no binlog file's name"),
        (SETTINGS + OLD.replace("mysql-bin.000002", "mysql-bin.000002\\0") + DATA, "no binlog file's name"),
        (SETTINGS + OLD.replace("mysql-bin.000002", "my\x1b[2Jsql-bin.000002") + DATA, "no binlog file's name"),
        (SETTINGS + OLD.replace("mysql-bin", "m" * 300) + DATA, "no binlog file's name"),
        ("mysql\x1b[2J-bin.000002\t559\n", "no binlog file's name"),
        (SETTINGS + OLD.replace("559", "3") + DATA, "no position"),
        (SETTINGS + OLD.replace("559", "9" * 30) + DATA, "no position"),
        (SETTINGS + OLD.replace("559", "\u00b2") + DATA, "no position"),
        (SETTINGS + OLD.replace(", MASTER_LOG_POS=559", "") + DATA, "without a position"),
        (SETTINGS + OLD.replace("mysql-bin.000002'", "mysql-bin.000002") + DATA, "cannot be read from"),
        (SETTINGS + "CHANGE MASTER TO " + "MASTER_LOG_POS=4," * 1000 + "\n", "which no dump program has written"),
        ("SQLite format 3\0" + "\0" * 100, "no text"),
        ("mysql-bin.000002\t559\n/etc/passwd\n", "more than a position"),
        ("Started dump at: 1\nSHOW MASTER STATUS:\n Log: mysql-bin.000002\n", "without a position"),
        ("Started dump at: 1\nFinished dump at: 2\n", "no position"),
        (
            "[master]\nFile = mysql-bin.000002\nPosition = 4\n[source]\nFile = mysql-bin.000002\nPosition = 5\n",
            "a second",
        ),
    ],
)
def test_what_cannot_be_believed_is_refused_with_the_file_and_the_reason(tmp_path: Path, text: str, why: str) -> None:
    path = dumped(tmp_path, text)
    message = refused(path)
    assert message.startswith(str(path)) and why in message and message.isprintable()


def test_what_only_looks_like_coordinates_behind_the_head_is_users_data(tmp_path: Path) -> None:
    assert "begins the data" in refused(dumped(tmp_path, SETTINGS + DATA + OLD))


@pytest.mark.parametrize(
    ("magic", "program"), [(b"\x28\xb5\x2f\xfd", "zstdcat"), (b"BZh9", "bzcat"), (b"PK\x03\x04", "unzip")]
)
def test_other_packings_are_told_with_the_program_that_reads_them(tmp_path: Path, magic: bytes, program: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(magic + bytes(50))
    assert program in refused(path)


def test_of_a_packed_dump_that_ends_before_its_first_line_it_is_said_how_much_was_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.sql.gz"
    path.write_bytes(gzip.compress(SETTINGS.encode())[:14])
    assert "of which 0 lines were read" in refused(path)


def test_a_packed_dump_that_is_damaged_is_told(tmp_path: Path) -> None:
    path = tmp_path / "dump.sql.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(50))
    assert "gzip" in refused(path)


def test_a_directory_that_says_nothing_or_too_much_or_is_not_finished_is_told(tmp_path: Path) -> None:
    assert "xtrabackup_binlog_info" in refused(tmp_path)
    dumped(tmp_path, "", "metadata.partial")
    assert "has not finished" in refused(tmp_path)
    dumped(tmp_path, METADATA["up to 0.13"], "metadata")
    dumped(tmp_path, BACKUPS["position"], "xtrabackup_binlog_info")
    assert "both there" in refused(tmp_path)


def test_a_dump_of_any_size_costs_little_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "dump.sql.gz"
    bomb.write_bytes(gzip.compress(b"-- \n" * (32 << 18)))
    plain = tmp_path / "dump.sql"
    with plain.open("wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    try:
        for path in (bomb, plain):
            assert str(path) in refused(path)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The text, and a line of it for each four characters.
    assert peak < 40 * HEAD_BYTES


@pytest.mark.parametrize("filling", [" ", "-", "'", "\\", ",", "a", "=", "#", "-- ", "MASTER_LOG_POS=4,", "\n-- "])
@pytest.mark.parametrize(
    "begin", ["", "CHANGE MASTER TO ", "-- Host: ", "[master]\nFile = ", "Started dump at:\nSHOW MASTER STATUS:\n"]
)
def test_a_head_of_one_endless_thing_is_read_in_no_time(tmp_path: Path, begin: str, filling: str) -> None:
    path = dumped(tmp_path, begin + filling * (HEAD_BYTES // len(filling)) + "x")
    started = time.process_time()
    refused(path)
    assert time.process_time() - started < 5


TEXTS = st.text(st.sampled_from("CHANGE MASTERTO_LOGFILEPOS='\\,;=-#\n\t 0123456789.mysql-bin[]:\0\xff"), max_size=400)
PARTS = st.lists(
    st.one_of(TEXTS, st.sampled_from([OLD, NEW, POSITION, REPLICA, DATA, SETTINGS, *METADATA.values()])), max_size=8
)


@given(PARTS)
def test_any_text_gives_a_binlogs_position_or_a_refusal(parts: list[str]) -> None:
    head = DumpHead(Path("dump.sql"), "".join(parts).split("\n"), True)
    try:
        place = metadata_place(head) if is_metadata(head) else sql_dump_place(head)
    except DumpRefused as error:
        assert str(error).startswith("dump.sql")
        return
    assert "/" not in place.position.file and place.position.offset >= 4
    assert 0 < place.line <= len(head.lines)
