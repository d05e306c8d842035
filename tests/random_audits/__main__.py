"""Compares the verdicts of random tests before the commit with those of `dbt test` after it.

python -m tests.random_audits --tables 300 --seed 0
python -m tests.random_audits --tables 300 --packages FOLDER...
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner

from tests.files import write_files
from tests.random_audits.tables import Drawn, draw

Verdict = tuple[str, int]
"""The status of a test, and its number of failures."""


@dataclass(frozen=True)
class Compared:
    """The verdicts of a project's tests, each by its name.

    Attributes:
        before: the verdicts before the commit.
        after: the verdicts of `dbt test`.
    """

    before: Mapping[str, Verdict]
    after: Mapping[str, Verdict]

    @property
    def different(self) -> list[str]:
        """The tests with two verdicts, as lines."""
        both = self.before.keys() & self.after.keys()
        return [
            f"{each}: {self.before[each]}, then {self.after[each]}"
            for each in sorted(both)
            if self.before[each] != self.after[each]
        ]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tables", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--packages", type=Path, nargs="*", default=[], help="folders of dbt packages")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = compared(Path(folder), range(chosen.seed, chosen.seed + chosen.tables), chosen.packages)
    print(*found.different, sep="\n")
    said = Counter(status for status, _ in found.before.values())
    print(f"{len(found.before)} audits of {len(found.after)} tests {dict(said)}; {len(found.different)} different")
    return 1 if found.different or not found.before else 0


def compared(project: Path, seeds: Sequence[int], packages: Iterable[Path] = ()) -> Compared:
    """Builds a model for each seed, audited, and tests it afterwards.

    Args:
        project: an empty folder.
        packages: folders of dbt packages, each with the name of its package.
    """
    packages = [each.resolve() for each in packages]
    names = frozenset(each.name for each in packages)
    write_files(project, dict(_files({f"t{seed}": draw(seed, f"t{seed}", names) for seed in seeds})))
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    for each in packages:
        shutil.copytree(each, project / "dbt_packages" / each.name)
    _dbt(["seed", *folders])
    _dbt(["run", "-s", "parent", *folders])
    built = _dbt(["run", "--exclude", "parent", *folders]).result.results
    errors = [f"{each.node.name}: {each.message}" for each in built if str(each.status) != "success"]
    assert not errors, "\n".join(errors)
    before = {
        each["name"]: (each["status"], each["failures"])
        for result in built
        for each in result.adapter_response.get("audits") or ()
    }
    tested = _dbt(["test", *folders]).result.results
    after = {each.node.name: (str(each.status), each.failures or 0) for each in tested}
    return Compared(before, after)


def _dbt(arguments: list[str]) -> Any:
    result = dbtRunner().invoke([*arguments, "--quiet"])
    assert result.result is not None, result.exception
    return result


def _files(drawn: Mapping[str, Drawn]) -> Iterable[tuple[str, str]]:
    yield (
        "dbt_project.yml",
        yaml.safe_dump(
            {
                "name": "drawn",
                "version": "1.0",
                "profile": "drawn",
                "models": {"+materialized": "table", "+audit": "before_commit", "+on_failure": "warn"},
            }
        ),
    )
    yield (
        "profiles.yml",
        yaml.safe_dump(
            {
                "drawn": {
                    "target": "dev",
                    "outputs": {
                        "dev": {
                            "type": "silt",
                            "threads": 4,
                            "warehouse": "warehouse",
                            "spark_conf": {"spark.sql.shuffle.partitions": 2},
                        }
                    },
                }
            }
        ),
    )
    yield "models/parent.sql", draw(-1, "parent", frozenset()).query
    models = []
    for name, each in drawn.items():
        yield f"models/{name}.sql", each.query
        columns = [{"name": column, "data_tests": tests} for column, tests in each.of_columns.items()]
        models.append({"name": name, "columns": columns, "data_tests": each.of_model})
        for test, query in each.singular.items():
            yield f"tests/{test}.sql", query
    yield "models/models.yml", yaml.safe_dump({"models": models})


if __name__ == "__main__":
    sys.exit(main())
