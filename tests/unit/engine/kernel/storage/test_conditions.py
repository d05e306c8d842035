"""A storage that ignores the conditions of writes is refused before anything is stored in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import ConditionsIgnoredError
from dbt.adapters.silt.engine.kernel.storage import conditions
from dbt.adapters.silt.engine.kernel.storage.conditions import require_conditions, try_conditions
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Tag
from tests.s3 import S3


class IgnoresAbsence(ObjectStore):
    """A service that writes an object even if it exists."""

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        self.put(path, data)
        return PutResult.CREATED


class IgnoresTags(ObjectStore):
    """A service that replaces an object whatever its tag."""

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        self.put(path, data)
        found = self.read_if_changed(path, None)
        return None if found is None else found.tag


class Counting(ObjectStore):
    """Counts the trials."""

    trials = 0

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        Counting.trials += 1
        return super().swap_if_unchanged(path, data, tag)


def at(kind: type[ObjectStore], s3: S3, name: str) -> ObjectStore:
    return kind(s3.store(name).root, s3.options)


def test_a_storage_that_honours_conditions_passes_and_no_object_is_left_behind(s3: S3) -> None:
    store = s3.store("keeps them é%20")
    kept = try_conditions(store, SystemClock().now_ms())
    assert (kept.created, kept.swapped) == ("kept", "kept")
    assert kept.clock_ms is not None and abs(kept.clock_ms) < 60_000
    assert list(store._keys("")) == []


@pytest.mark.parametrize(
    ("kind", "condition"), [(IgnoresAbsence, "create-if-absent"), (IgnoresTags, "swap-if-unchanged")]
)
def test_a_storage_that_ignores_a_condition_is_refused_by_the_first_schema_and_no_object_is_left(
    s3: S3, kind: type[ObjectStore], condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "_kept", set())
    store = at(kind, s3, f"ignores {condition}")
    with pytest.raises(ConditionsIgnoredError, match=rf"ignores conditions \({condition}\).*Use another storage"):
        Catalog({"silt": store}).create_schema("silt", "main")
    assert list(store._keys("")) == []


def test_a_bucket_is_tested_once_in_a_process_and_a_folder_never(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "_kept", set())
    store = at(Counting, s3, "counted")
    for each in (store, store.child("main"), LocalStore(tmp_path)):
        require_conditions(each, 0)
    assert Counting.trials == 2
