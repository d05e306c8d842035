"""Puts absurd numbers into each place of a table's log that holds a number, and opens the table by each door.

python -m tests.security.logs.numbers FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt import engine as silt_engine
from dbt.adapters.silt.engine.kernel.errors import SiltError
from tests.security.attacks import DOORS, actions_of, changed, log_folder, put_commit, report, silt, with_two_tables
from tests.unit.cli.house import House

NUMBERS: Final = (
    *("1e-999999999", "0e-999999999", "-1E-10000000", "1e-99999999999999999999", "0." + "0" * 5000 + "1"),
    *("1e999999999", "1e99999999999999999999", "1e400", "9" * 100_000, "-" + "9" * 400, "1" + "0" * 30),
    *("NaN", "Infinity", "-Infinity", "1.5", "true", "[1]", '"x"'),
)
_HERE: Final = '"@"'
_COLUMNS: Final = {"id": "id >= 3", "price": "price >= 1.50", "sold": "sold >= timestamp '2024-01-01'"}


def _raw(house: House, name: str, number: str) -> None:
    """Replaces the placeholder in a file of the log by the number, which need not be JSON."""
    path = log_folder(house) / name
    path.write_text(path.read_text(encoding="utf-8").replace(_HERE, number), encoding="utf-8")


def _field(kind: str, version: int = 1, **fields: Any) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        changed(house, version, kind, **fields)
        _raw(house, f"{version:020d}.json", number)

    return attack


def _statistics(**members: Any) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        text = json.dumps({"numRecords": 3, **members}).replace(_HERE, number)
        changed(house, 1, "add", stats=text)

    return attack


def _partition(column: str) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        changed(house, 0, "metaData", partitionColumns=[column])
        for version in (0, 1):
            changed(house, version, "add", partitionValues={column: number})

    return attack


def _file(name: str, **body: Any) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        (log_folder(house) / name).write_text(json.dumps(body), encoding="utf-8")
        _raw(house, name, number)

    return attack


def _domain(domain: str, configuration: str) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        body = {"domain": domain, "configuration": configuration.replace("@", number), "removed": False}
        put_commit(house, 2, {"domainMetadata": body})

    return attack


def _property(key: str, text: str = "@") -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        changed(house, 0, "metaData", configuration={key: text.replace("@", number)})

    return attack


def _type(text: str) -> Callable[[House, str], None]:
    def attack(house: House, number: str) -> None:
        (schema,) = [
            json.loads(each["metaData"]["schemaString"]) for each in actions_of(house, 0) if "metaData" in each
        ]
        schema["fields"][2]["type"] = text.replace("@", number)
        changed(house, 0, "metaData", schemaString=json.dumps(schema))

    return attack


PLACES: Final[dict[str, Callable[[House, str], None]]] = {
    **{f"least {name}": _statistics(minValues={name: "@"}, maxValues={}) for name in _COLUMNS},
    **{f"greatest {name}": _statistics(minValues={}, maxValues={name: "@"}) for name in _COLUMNS},
    **{f"partition of {name}": _partition(name) for name in _COLUMNS},
    "number of nulls": _statistics(nullCount={"price": "@"}),
    "number of rows": _statistics(numRecords="@"),
    "size": _field("add", size="@"),
    "modification time": _field("add", modificationTime="@"),
    "commit time": _field("commitInfo", timestamp="@", inCommitTimestamp="@"),
    "metrics": _field("commitInfo", operationMetrics={"numOutputRows": "@"}, commitAttempts="@"),
    "facts": _field("commitInfo", readVersions={"silt.main.good": ["@"]}, dbt={"commitFormat": "@"}),
    "created time": _field("metaData", 0, createdTime="@"),
    "protocol": _field("protocol", 0, minReaderVersion="@"),
    "vector": _field(
        "add", deletionVector={"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": "@", "cardinality": "@"}
    ),
    "hint": _file("_last_checkpoint", version="@", size="@"),
    "checksum": _file(f"{1:020d}.crc", tableSizeBytes="@", numFiles="@", numMetadata="@", numProtocol="@"),
    "row ids": _domain("delta.rowTracking", '{"rowIdHighWaterMark": @}'),
    "interval": _property("delta.deletedFileRetentionDuration", "interval @ days"),
    "checkpoints": _property("delta.checkpointInterval"),
    "size of files": _property("delta.targetFileSize"),
    "precision": _type("decimal(@, 2)"),
    "scale": _type("decimal(12, @)"),
    "scale below 0": _type("decimal(12, -@)"),
    "length": _type("varchar(@)"),
}
"""The places by name, each with the function that puts a number there."""


def attacks(folder: Path, every: int) -> Iterator[str]:
    """Opens a table by each door for each number in each place; yields the problems that it finds.

    Args:
        every: tries only every so many of the combinations.
    """
    for index, (number, place) in enumerate((number, place) for number in NUMBERS for place in PLACES):
        if index % every == 0:
            house = with_two_tables(folder / str(index))
            PLACES[place](house, number)
            name = f"{number[:30]} as {place}"
            print(name, flush=True)
            yield from (f"{name}: {problem}" for problem in _problems(house, folder / "page.html"))


def _problems(house: House, page: Path) -> Iterator[str]:
    for condition in _COLUMNS.values():
        try:
            silt_engine.read("main.hostile", warehouse=str(house.folder), where=condition)
        except SiltError as error:
            if error.code == "SILT_INTERNAL":
                yield f"read: {error}"
    for said in [*(silt(house, *door) for door in DOORS), report(house, page)]:
        if said.code not in (0, 1, 2) or "SILT_INTERNAL" in said.all:
            yield said.all
    if silt(house, "show", "main.good", "--rows").code != 0 or "main.good" not in page.read_text(encoding="utf-8"):
        yield "the other table cannot be read"


def main(folder: str, every: str = "1") -> int:
    """Prints the attacks, then their problems, and returns the exit code: the last line names the attack that ended
    the process.
    """
    problems = list(attacks(Path(folder), int(every)))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
