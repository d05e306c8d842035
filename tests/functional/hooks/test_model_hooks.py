"""dbt-tests-adapter: hooks of a node."""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_model_hooks import TestPrePostModelHooksUnderscores as BaseUnderscores

from tests.functional.hooks.context import check_context, written_contexts


class OurProfile:
    """Uses this adapter's profile instead of Postgres'."""

    def check_hooks(self, state: str, project: Any, host: Any, count: int = 1) -> None:
        contexts = written_contexts(project, "on_model_hook", state)
        assert len(contexts) == count
        for context in contexts:
            check_context(context, project, state)
            assert context["thread_id"].startswith("Thread-")


class TestPrePostModelHooks(OurProfile, BasePrePostModelHooks):
    pass


class TestPrePostModelHooksUnderscores(OurProfile, BaseUnderscores):
    pass


class TestPrePostModelHooksInConfig(OurProfile, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigKwargs(OurProfile, BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksInConfigWithCount(OurProfile, BasePrePostModelHooksInConfigWithCount):
    pass


class TestHookRefs(OurProfile, BaseHookRefs):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    pass
