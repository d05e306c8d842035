"""Runs a story with dbt in this process, and compares each command and its tables with the oracle."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner
from dbt.contracts.files import FileHash  # type: ignore[attr-defined]
from dbt.contracts.graph.manifest import ManifestStateCheck
from dbt.contracts.results import NodeResult  # type: ignore[attr-defined]
from dbt.materializations.incremental.microbatch import MicrobatchBuilder
from dbt.parser.manifest import ManifestLoader
from deltalake import DeltaTable
from deltalake.schema import StructType
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.audits.audit import QUARANTINE_SUFFIX
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalFolder
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from dbt.adapters.silt.session import accelerator as accelerators
from dbt.adapters.silt.session.accelerator import Accelerator
from dbt.adapters.silt.session.spark import SessionSettings, open_session
from tests.conftest import INTERPRETED, SPARK_SETTINGS
from tests.functional import quick_dbt
from tests.random_projects.oracle import Oracle
from tests.random_projects.project import LINK, Step, Story, files, filter_macros
from tests.random_projects.strategies import Refused, Undecided
from tests.random_projects.values import CORE, Row, as_stored, literal

ROOT: Final = Path(__file__).parents[2]
SCHEMA: Final = "main"
_SPARK_TYPES: Final = {"long": "bigint", "integer": "int"}
_NOT_OF_DELTA_RS: Final = {"deletionVectors", "typeWidening", "typeWidening-preview"}
_LOST: Final = ("Not published: ", "run it again")
"""Texts of a command that has lost a conflict with another command: it is to be run again."""
_ID_OF_VERSION: Final = "dbt_scd_id"
"""The column of a snapshot that is a hash, about which the documentation says nothing but that it distinguishes."""
_UNKNOWN: Final = {_ID_OF_VERSION, "_silt_failed", "_silt_run_id", "_silt_node", "_silt_at"}
"""The columns about whose values the oracle says nothing."""
_SPARK: Final = {
    **INTERPRETED,
    "spark.buffer.pageSize": SPARK_SETTINGS["spark.buffer.pageSize"],
    "spark.driver.extraJavaOptions": SPARK_SETTINGS["spark.driver.extraJavaOptions"],
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


_LANDED: Final = pa.schema(
    {
        "k": pa.int64(),
        "g": pa.string(),
        "d": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "n": pa.decimal128(10, 2),
        "x": pa.float64(),
    }
)


class Difference(AssertionError):
    """A command, or a relation after it, is not what the oracle says."""


def start_spark(accelerator: str | None = None) -> None:
    """Starts the Spark of this process before the first command, with settings for small rows."""
    added = accelerators.settings(Accelerator(accelerator), _SPARK, "local[2]", ()) if accelerator else {}
    open_session(SessionSettings("local[2]", spark_conf=_SPARK | added))


@dataclass
class Player:
    """Plays a story.

    Attributes:
        folder: the project, which may be that of another story.
        warehouse: an empty folder.
        macros: further macros of the project, which replace those of the package: planted bugs.
        accelerator: of the profile.
    """

    folder: Path
    warehouse: Path
    story: Story
    macros: str = ""
    accelerator: str | None = None

    def difference(self) -> str:
        """Returns the differences after the first command that differs from the oracle; empty without any."""
        try:
            self.play()
        except Difference as difference:
            return str(difference)
        return ""

    def play(self) -> None:
        """Runs all steps.

        Raises:
            Difference: after the first command that differs.
        """
        self._prepare()
        oracle = Oracle(self.story)
        for number, step in enumerate(self.story.steps):
            oracle.change(step)
            self._write_files(oracle, step)
            self._write_sources(oracle, step)
            try:
                expected_beside = oracle.run(_beside(step)) if step.overlaps else {}
                expected = oracle.run(step)
            except Undecided:
                return
            if step.fault:
                with at(step.now), _failing_at(step.fault, step.is_lost):
                    self._dbt_of(*step.command())
            with at(step.now):
                found, text = self._played(step, expected_beside)
            where = f"step {number} ({' '.join(step.command())})"
            if found != expected:
                raise Difference(f"{where}: {_different(expected, found)}\n{text}")
            if differences := list(self._differences(oracle)):
                raise Difference(f"{where}:\n" + "\n".join(differences) + f"\n{text}")

    def _prepare(self) -> None:
        target = {
            "type": "silt",
            "warehouse": str(self.warehouse),
            "schema": SCHEMA,
            "threads": 2,
            "master": "local[2]",
            "spark_conf": _SPARK,
            **({"accelerator": self.accelerator} if self.accelerator else {}),
            **({"upkeep": {"budget": "1 minute"}} if self.story.upkeep else {}),
        }
        # The runs of another story in this folder have the same ids. dbt's saved parse would lose a snapshot that both
        # stories have in YAML, if its file has other nodes.
        for pattern in ("silt_*.json", "partial_parse.msgpack"):
            for path in (self.folder / "target").glob(pattern):
                path.unlink()
        for name in ("copies", "landed", "landing"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        profile = {"random": {"target": "test", "outputs": {"test": target}}}
        self._put("profiles.yml", yaml.safe_dump(profile))
        start_spark(self.accelerator)

    def _put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def _write_files(self, oracle: Oracle, step: Step) -> None:
        wanted = files(oracle.nodes, oracle.rows, self.story.begin)
        wanted["macros/planted.sql"] = self.macros
        wanted["macros/filter.sql"] = filter_macros(step) if any(each.filter for each in self.story.steps) else ""
        for name, rows in step.rows.items():
            if oracle.nodes[name].kind == "file":
                self._land(name, rows)
        for path in self.folder.glob("*s/*.*"):
            if f"{path.parent.name}/{path.name}" not in wanted and path.parent.name in ("models", "seeds"):
                path.unlink()
        for name, text in wanted.items():
            self._put(name, text)

    def _land(self, name: str, rows: Sequence[Row]) -> None:
        """Writes a file into a new folder, and lets the link of its source point to it."""
        days, source = self.folder / "landed", self.folder / "landing" / name
        day = days / f"{name}-{len(list(days.glob('*')))}"
        day.mkdir(parents=True)
        source.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], _LANDED), day / "rows.parquet")
        (source / LINK).unlink(missing_ok=True)
        (source / LINK).symlink_to(day, target_is_directory=True)

    def _restore(self, name: str) -> None:
        """Replaces the folder of a table by its copy of before the last change."""
        folder, copied = self.warehouse / "raw" / name, self.folder / "copies" / name
        if copied.exists():
            shutil.rmtree(folder)
            shutil.copytree(copied, folder)

    def _write_sources(self, oracle: Oracle, step: Step) -> None:
        house = Warehouse(SparkSession.builder.getOrCreate(), str(self.warehouse))
        for name, rows in step.rows.items():
            if oracle.nodes[name].kind != "source":
                continue
            if name in step.restored:
                self._restore(name)
            if not (self.warehouse / "raw" / name).exists():
                house.sql("create schema if not exists raw")
                columns = ", ".join(f"{column} {kind}" for column, kind in CORE.items())
                house.sql(f"create table raw.{name} ({columns})")
            copied = self.folder / "copies" / name
            shutil.rmtree(copied, ignore_errors=True)
            shutil.copytree(self.warehouse / "raw" / name, copied)
            house.sql(f"insert overwrite raw.{name} {_values(rows)}")

    def _played(self, step: Step, expected: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """The ends of all nodes other than tests, and the output. If the step overlaps, another process begins the
        command before, as another logical run.

        Raises:
            Difference: if the nodes of the other command end in another way.
        """
        if not step.overlaps:
            return self._dbt(step)
        arguments = _beside(step).command()
        command = [sys.executable, "-m", "tests.random_projects.beside", str(self.folder), step.now.isoformat()]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            lines = list(_until_a_node_starts(process.stdout))
            rest = threading.Thread(target=lines.extend, args=(process.stdout,))
            rest.start()
            found, text = self._dbt(step)
            rest.join()
        text_beside = "".join(lines)
        if _has_lost(text_beside):
            text_beside = subprocess.run(
                [*command, *arguments], check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT
            ).stdout
        if text_beside.splitlines()[-1:] != [json.dumps(expected, sort_keys=True)]:
            raise Difference(f"the command beside it should end with {expected}:\n{text_beside}")
        return self._dbt(step) if _has_lost(text) else (found, text)

    def _dbt(self, step: Step) -> tuple[dict[str, str], str]:
        result, text = self._dbt_of(*step.command())
        if result.exception is not None and not (step.overlaps and _has_lost(text)):
            raise Difference(f"{step.command()}: {result.exception!r}\n{text}")
        return ends_of(result.result or ()), text

    def _dbt_of(self, *arguments: str) -> tuple[Any, str]:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            result = run_dbt(self.folder, "target", arguments)
        return result, output.getvalue()

    def _differences(self, oracle: Oracle) -> Iterator[str]:
        for name, relation in oracle.relations.items():
            if oracle.nodes.get(name) and oracle.nodes[name].kind in ("source", "file"):
                continue
            try:
                expected = _stored(oracle.contents(name), list(relation.columns))
            except Refused:
                continue
            if relation.query is None and not (self.warehouse / SCHEMA / name).exists():
                yield f"{name} is missing"
                continue
            is_quarantine = name.endswith(QUARANTINE_SUFFIX)  # which has further columns
            if (
                relation.query is None
                and not is_quarantine
                and (different := self._different_columns(name, relation.columns))
            ):
                yield f"{name} has other columns: {different}"
            for reader, found in self._readings(name, list(relation.columns), relation.query is not None):
                if found != expected:
                    yield f"{name}, read by {reader}: missing {expected - found}, unexpected {found - expected}"

    def _different_columns(self, name: str, expected: Mapping[str, str]) -> str:
        schema = DeltaTable(self.warehouse / SCHEMA / name).schema()
        found = {each.name: _name_of(each.type) for each in schema.fields if each.name != _ID_OF_VERSION}
        wanted = dict(expected)
        return "" if found == wanted else f"expected {wanted}, found {found}"

    def _readings(self, name: str, columns: list[str], is_view: bool) -> Iterator[tuple[str, Counter[Any]]]:
        if is_view:
            trusting = WarehouseSettings(external_paths=True)
            house = Warehouse(SparkSession.builder.getOrCreate(), str(self.warehouse), settings=trusting)
            rows = [each.asDict(recursive=True) for each in house.sql(f"select * from {SCHEMA}.{name}").collect()]
            yield "Spark", _stored(rows, columns)
            return
        yield "Arrow", _stored(silt.read(f"{SCHEMA}.{name}", warehouse=str(self.warehouse)).to_pylist(), columns)
        table = DeltaTable(self.warehouse / SCHEMA / name)
        is_mapped = "delta.columnMapping.mode" in table.metadata().configuration
        if not is_mapped and not _NOT_OF_DELTA_RS.intersection(table.protocol().reader_features or ()):
            yield "delta-rs", _stored(table.to_pyarrow_table().to_pylist(), columns)


def run_dbt(folder: Path, target: str, arguments: Sequence[str]) -> Any:
    """Runs a command in a project, with its artifacts in a folder of it."""
    folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    folders += ["--target-path", str(folder / target), "--log-path", str(folder / "logs")]
    reset_adapters()
    with pytest.MonkeyPatch.context() as patch:
        quick_dbt.install(patch)
        patch.setattr(ManifestLoader, "build_manifest_state_check", _same_state)
        return dbtRunner().invoke(["--no-use-colors", *arguments, *folders])


def ends_of(results: Sequence[NodeResult]) -> dict[str, str]:
    """The end of each node other than tests."""
    return {
        each.node.name: each.status.value
        for each in results
        if each.node.resource_type.value in ("model", "seed", "snapshot")
    }


def _has_lost(text: str) -> bool:
    return any(words in text for words in _LOST)


def _until_a_node_starts(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if " START " in line:
            return


def _beside(step: Step) -> Step:
    """The same command as another logical run."""
    return replace(step, run_id=f"{step.run_id}-beside")


def _name_of(kind: Any) -> str:
    """The name of a type of delta-rs in Spark."""
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{each.name}:{_name_of(each.type)}' for each in kind.fields)}>"
    return _SPARK_TYPES.get(str(kind.type), str(kind.type))


_state = ManifestLoader.build_manifest_state_check


def _same_state(loader: ManifestLoader) -> ManifestStateCheck:
    """Replaces dbt's method: dbt parses no file again because a variable or the warehouse differs."""
    state = _state(loader)  # type: ignore[no-untyped-call]
    state.vars_hash = state.profile_hash = FileHash.from_contents("")
    return state


@contextlib.contextmanager
def at(now: datetime) -> Iterator[None]:
    """Lets the last batch of microbatch models end at a moment."""
    moment = now.replace(tzinfo=timezone.utc)
    with mock.patch.object(MicrobatchBuilder, "build_end_time", return_value=moment):
        yield


@contextlib.contextmanager
def _failing_at(number: int, is_lost: bool) -> Iterator[None]:
    """Lets the storage fail at a commit, before or after it is written."""
    numbers, put = itertools.count(1), LocalFolder.put_if_absent

    def failing(folder: LocalFolder, name: str, data: bytes) -> PutResult:
        fails = next(numbers) == number
        if not fails or is_lost:
            result = put(folder, name, data)
        if fails:
            raise StorageError("the storage failed, as the story says")
        return result

    with mock.patch.object(LocalFolder, "put_if_absent", failing):
        yield


def _values(rows: Sequence[Row]) -> str:
    tuples = (f"({', '.join(literal(row[name], kind) for name, kind in CORE.items())})" for row in rows)
    nothing = ", ".join(f"cast(null as {kind})" for kind in CORE.values())
    return f"values {', '.join(tuples)}" if rows else f"select {nothing} where false"


def _stored(rows: Sequence[Mapping[str, Any]], columns: list[str]) -> Counter[Any]:
    """The rows as a multiset; a row with other columns counts with all of its names."""
    return Counter(
        tuple((name, as_stored(_without_zone(row[name]))) for name in sorted(row) if name not in _UNKNOWN)
        for row in ({name: row.get(name) for name in columns} | dict(row) for row in rows)
    )


def _without_zone(value: Any) -> Any:
    has_zone = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(timezone.utc).replace(tzinfo=None) if has_zone else value


def _different(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    names = sorted(expected.keys() | found.keys())
    different = [name for name in names if expected.get(name) != found.get(name)]
    return "; ".join(f"{name}: expected {expected.get(name)}, found {found.get(name)}" for name in different)
