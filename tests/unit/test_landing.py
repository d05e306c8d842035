"""The files that the sample project's script lands each month."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sample_project import land

KEY = ("time_hour", "carrier", "flight")


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which January and February landed."""
    folder = tmp_path_factory.mktemp("landing")
    for month in (1, 2):
        land.land(month, folder)
    return folder


def read(folder: Path, feed: str, month: int) -> pa.Table:
    return pq.read_table(folder / feed / f"2013-{month:02}.parquet")


def keys(flights: pa.Table) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in flights.select(KEY).to_pylist()}


def test_a_month_lands_the_same_files_every_time(landed: Path, tmp_path: Path) -> None:
    land.land(2, tmp_path)
    land.land(2, tmp_path)
    for feed in ("flights", "weather", "planes"):
        assert read(tmp_path, feed, 2).equals(read(landed, feed, 2))


def test_flights_that_were_withheld_in_january_land_with_february(landed: Path) -> None:
    january, february = read(landed, "flights", 1), read(landed, "flights", 2)
    all_flights = land.read_csv("flights.csv.zip")
    of_january = all_flights.filter(pc.equal(all_flights["month"], 1))
    late = keys(of_january) - keys(january)
    assert len(late) > 0
    assert late <= keys(february)


def test_corrected_flights_of_january_land_again_with_another_arrival(landed: Path) -> None:
    january, february = read(landed, "flights", 1), read(landed, "flights", 2)
    first = {tuple(row[name] for name in KEY): row["arr_delay"] for row in january.to_pylist()}
    again = {tuple(row[name] for name in KEY): row["arr_delay"] for row in february.to_pylist()}
    corrected = first.keys() & again.keys()
    assert len(corrected) > 0
    assert all(again[key] == first[key] + 10 for key in corrected)


def test_a_flight_lands_once_a_month_at_most(landed: Path) -> None:
    for month in (1, 2):
        flights = read(landed, "flights", month)
        assert len(keys(flights)) == flights.num_rows


def test_changed_planes_have_a_newer_time_of_update(landed: Path) -> None:
    january = {row["tailnum"]: row for row in read(landed, "planes", 1).to_pylist()}
    february = {row["tailnum"]: row for row in read(landed, "planes", 2).to_pylist()}
    refitted = [name for name, row in february.items() if row["seats"] != january[name]["seats"]]
    newer = [name for name, row in february.items() if row["updated_at"] > january[name]["updated_at"]]
    assert refitted == newer != []
    assert january.keys() - february.keys(), "some planes leave the register"


def test_december_lands_in_the_next_year() -> None:
    assert land.landing_time(12).as_py().isoformat() == "2014-01-01T06:00:00+00:00"
