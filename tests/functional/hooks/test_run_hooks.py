"""dbt-tests-adapter: hooks of a run."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks

from tests.functional.hooks.context import check_context, written_contexts


class TestPrePostRunHooks(BasePrePostRunHooks):
    """With Spark's name of the type `text`, and with this adapter's profile."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        update = BasePrePostRunHooks.project_config_update.__wrapped__(self)  # type: ignore[attr-defined]
        update["on-run-end"] = [hook.replace(" text", " string") for hook in update["on-run-end"]]
        return update

    def check_hooks(self, state: str, project: Any, host: Any) -> None:
        [context] = written_contexts(project, "on_run_hook", state)
        check_context(context, project, state)
        assert context["thread_id"].startswith("Thread-") or context["thread_id"] == "MainThread"


class TestAfterRunHooks(BaseAfterRunHooks):
    pass
