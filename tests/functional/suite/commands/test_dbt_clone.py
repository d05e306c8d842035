"""dbt's own classes of `dbt clone`."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_clone import test_dbt_clone as clone

pytestmark = pytest.mark.manifest


@pytest.mark.kept
class TestClonePossible(clone.BaseClonePossible):
    pass


class TestCloneNotPossible(clone.BaseCloneNotPossible):
    pass


class TestCloneSameSourceAndTarget(clone.BaseCloneSameSourceAndTarget):
    pass


class TestCloneSameTargetAndState(clone.BaseCloneSameTargetAndState):
    pass
