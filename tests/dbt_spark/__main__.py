"""Runs the functional tests of dbt-spark against `silt endpoint`: python -m tests.dbt_spark FOLDER [--door connect].

FOLDER is `dbt-spark` of a clone of https://github.com/dbt-labs/dbt-adapters; nothing is written there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tests import kept_sparks
from tests.dbt_spark import suite_conftest
from tests.dbt_spark.reasons import ONLY, REASONS
from tests.functional.endpoint.served import TOKEN, endpoint

DOORS: Final = ("thrift", "connect")
SUITE: Final = Path("tests", "functional", "adapter")


@dataclass(frozen=True)
class Result:
    """The results of the suite at a door: the names of its tests by what became of them."""

    door: str
    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]

    def complaints(self) -> Iterator[str]:
        """Yields the tests that fail without a reason, and the tests that pass against their reason."""
        reasons = {**REASONS, **ONLY[self.door]}
        yield from (f"{name} fails" for name in sorted(self.failed) if _reason(reasons, name) is None)
        yield from (f"{name} passes" for name in sorted(self.passed) if _reason(reasons, name) is not None)

    def __str__(self) -> str:
        return f"{self.door}: {len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def _reason(reasons: Mapping[str, str], name: str) -> str | None:
    return reasons.get(name) or reasons.get(name.partition(".")[0])


def main() -> int:
    """Runs the suite at the doors, and prints the results; returns 0 if they are as `reasons` states."""
    parser = argparse.ArgumentParser(prog="python -m tests.dbt_spark")
    parser.add_argument("folder", type=Path, help="the folder dbt-spark of a clone of dbt-adapters")
    parser.add_argument("--door", choices=DOORS, nargs="*", default=DOORS)
    parser.add_argument("-k", metavar="EXPRESSION", help="only the tests that pytest selects by it")
    arguments = parser.parse_args()
    if not (arguments.folder / SUITE).is_dir():
        parser.error(f"{arguments.folder / SUITE} is not there")
    results = [run(arguments.folder, door, arguments.k) for door in arguments.door]
    complaints = [f"  {each.door}: {text}" for each in results for text in each.complaints()]
    print("\n".join([*map(str, results), *complaints]))
    return 1 if complaints else 0


def run(folder: Path, door: str, selected: str | None) -> Result:
    """Runs the suite in a copy, at an endpoint of a new warehouse."""
    with tempfile.TemporaryDirectory(prefix="silt-dbt-spark.") as scratch:
        suite, warehouse = Path(scratch, "dbt-spark"), Path(scratch, "warehouse")
        shutil.copytree(folder / "tests", suite / "tests")
        shutil.copy(suite_conftest.__file__, suite / SUITE / "conftest.py")
        warehouse.mkdir()
        options = ("--connect-port", "0") if door == "connect" else ()
        with kept_sparks.of_their_own(Path(scratch, "cache")), endpoint(warehouse, *options) as served:
            report = suite / "report.xml"
            command = [sys.executable, "-m", "pytest", "--rootdir=.", "-o", "addopts=", f"--junitxml={report}"]
            more = () if selected is None else ("-k", selected)
            subprocess.run(
                [*command, "--tb=short", *more, SUITE], cwd=suite, env=environment(door, served), check=False
            )
        return _result(door, ElementTree.parse(report).getroot())


def environment(door: str, served: dict[str, Any]) -> dict[str, str]:
    """Returns the variables of the suite, with the profile's target."""
    if door == "connect":
        target: dict[str, Any] = {"type": "spark", "method": "session", "host": "NA"}
    else:
        login = {"auth": "LDAP", "user": "ann", "password": TOKEN}
        target = {"type": "spark", "method": "thrift", "host": "127.0.0.1", "port": served["port"], **login}
    target["server_side_parameters"] = {"silt.file_format": "delta"}  # some of its models name Parquet
    remote = {"SPARK_REMOTE": f"{served['connect']}/;token={TOKEN}"} if door == "connect" else {}
    users = {f"DBT_TEST_USER_{number}": f"user{number}" for number in (1, 2, 3)}
    return {
        **os.environ,
        **users,
        **remote,
        "SILT_DBT_SPARK_TARGET": json.dumps(target),
        "DBT_DATABRICKS_HOST_NAME": "nowhere",  # the suite reads it when it is imported
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def _result(door: str, report: ElementTree.Element) -> Result:
    found: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in report.iter("testcase"):
        kinds = {each.tag for each in case}
        kind = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[kind].add(f"{case.attrib['classname'].rpartition('.')[2]}.{case.attrib['name']}")
    return Result(door, **{kind: frozenset(names) for kind, names in found.items()})


if __name__ == "__main__":
    sys.exit(main())
