"""A dbt run during which the credentials expire or the service hangs; the same command resumes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from tests.cloud import faults as of
from tests.cloud import project
from tests.cloud.faults import Faults, Which
from tests.cloud.proxy import Passing, behind_proxy
from tests.cloud.servers import ObjectServer
from tests.cloud.test_dbt import FILES, catalog_of, named, start_dbt
from tests.cloud.test_one_set_of_settings import storage_of

_RUN_SECONDS = 300
RUN = ("run", "--vars", json.dumps({"silt_run_id": "once"}))
SAID = "the credentials have expired"


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def shop(server: ObjectServer, faults: Faults, tmp_path: Path) -> Iterator[Path]:
    """A project that reaches its warehouse through the proxy."""
    if server.name != "s3":
        pytest.skip("the faults are of an S3")
    with behind_proxy(server, faults) as behind:
        yield project.made(server, tmp_path, FILES, storage=storage_of(behind) | {"timeout": 1}, threads=1).folder
        faults.release()


def of_orders(which: Which) -> Which:
    return lambda passing: "/main/orders/" in passing.path and which(passing)


def first_commit(passing: Passing) -> bool:
    return passing.method == "PUT" and passing.path.endswith("/_delta_log/00000000000000000000.json")


def ended(shop: Path) -> int:
    return start_dbt(shop, *RUN).wait(_RUN_SECONDS)


def units(server: ObjectServer, shop: Path, model: str) -> int:
    log = catalog_of(server, shop).table(named(model))
    return sum(isinstance(action, SetTransaction) for commit in log.commits() for action in commit.actions)


@pytest.mark.parametrize(
    ("which", "code"),
    [(of.upload, "SILT_STORAGE_REFUSED"), (first_commit, "SILT_NOT_WRITTEN")],
    ids=["when Spark writes", "at the commit"],
)
def test_a_run_whose_credentials_expire_is_resumed_and_applies_each_model_once(
    server: ObjectServer, shop: Path, faults: Faults, which: Which, code: str
) -> None:
    faults.expire_at(of_orders(which))
    assert ended(shop) == 1
    said = (shop / "dbt.log").read_text()
    assert code in said and SAID in said, said
    faults.release()
    assert units(server, shop, "raw") == 1
    assert ended(shop) == 0, (shop / "dbt.log").read_text()
    assert [units(server, shop, model) for model in ("raw", "orders", "log")] == [1, 1, 1]


def test_a_run_whose_service_hangs_at_a_commit_is_resumed_and_applies_each_model_once(
    server: ObjectServer, shop: Path, faults: Faults
) -> None:
    faults.hang_at(of_orders(first_commit))
    assert ended(shop) == 1
    said = (shop / "dbt.log").read_text()
    assert "SILT_COMMIT_STATE_UNKNOWN" in said and "does not answer" in said, said
    faults.release()
    assert ended(shop) == 0, (shop / "dbt.log").read_text()
    assert [units(server, shop, model) for model in ("raw", "orders", "log")] == [1, 1, 1]
