"""Keeps the node that each thread runs, and adds to its errors what it had committed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtInternalError, DbtRuntimeError

from dbt.adapters.silt.runs.node_context import NodeContext
from dbt.adapters.silt.runs.query_comments import node_tags

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

    from dbt.adapters.silt.runs.committed_work import CommittedBatches

logger = AdapterLogger("Silt")

_ON_A_THREAD = "Exception on worker thread. "
"""What dbt puts before the error of a batch."""


class CurrentNode:
    """The node that each thread of a dbt command runs now.

    Args:
        batches: what the batches of microbatch models have committed.
    """

    def __init__(self, batches: CommittedBatches) -> None:
        self._batches = batches
        self._local = threading.local()

    @property
    def context(self) -> NodeContext:
        """This thread's."""
        if not hasattr(self._local, "context"):
            self._local.context = NodeContext()
        context: NodeContext = self._local.context
        return context

    @contextlib.contextmanager
    def scope(self, node: Any, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        """Gives what this thread runs in here a context of its own: a node, or several hooks, or an operation.

        An error that ends it says what was committed. So does a model of several batches, of which some failed.

        Args:
            node: dbt's; None for hooks and operations.
            is_cancelled: whether the thread's connection was cancelled.

        Raises:
            DbtRuntimeError: no batch of a model came to its end; dbt's own result would not say why.
        """
        outer, self._local.context = self.context, NodeContext(node)
        try:
            yield
            self._end_batches(node, may_raise=True)
        except BaseException as error:
            message = self.context.committed.take_all_messages()
            _append_to_error(error, message)
            if message is not None and is_cancelled():
                # Of a command that is interrupted, dbt shows no error of a node.
                logger.warning(f"{get_node_info().get('unique_id') or 'Cancelled'}: {message}")
            if self.context.batch_id is not None:
                self._batches.fail(node.unique_id, self.context.batch_id, str(error))
            self._end_batches(node, may_raise=False)
            raise
        finally:
            self._local.context = outer

    def _end_batches(self, node: Any, may_raise: bool) -> None:
        """Where all batches of a model are through, says which of them failed.

        A retry would do the batches again that an earlier run has done, if their results were lost in an error.
        """
        if node is None or getattr(node, "batch", None) is not None:
            return
        failed = self._batches.ended(node.unique_id)
        if failed is None:
            return
        if may_raise and failed.is_whole and getattr(node, "previous_batch_results", None) is None:
            raise DbtRuntimeError(failed.message or "")
        _append_to_error(None, failed.message)

    def begin(self, config: Any) -> None:
        """The materialization of this thread's node begins, with this configuration."""
        self.context.tags, self.context.batch_id = node_tags(config), _batch_id(config)

    def end(self) -> None:
        """The materialization of this thread's node came to its end."""
        self.context.ended = True

    def leave(self) -> None:
        """dbt is through with this thread's node; of a batch that failed, it has passed over the error by now."""
        context, node_id = self.context, get_node_info().get("unique_id")
        if context.batch_id is None:
            return
        if context.ended:
            self._batches.end(str(node_id))
        else:
            self._batches.fail(str(node_id), context.batch_id, context.failure)
            _append_to_error(None, context.committed.take_message(node_id))

    def on_event(self, event: EventMsg) -> None:
        """Keeps the reason why this thread's batch fails: dbt only logs it."""
        if event.info.name == "GenericExceptionOnRun" and self.context.batch_id is not None:
            self.context.failure = str(getattr(event.data, "exc", "")).removeprefix(_ON_A_THREAD)

    @contextlib.contextmanager
    def hook_errors(self) -> Iterator[None]:
        """An error in here says what the same on-run hook had committed: nothing above sees it but dbt."""
        try:
            yield
        except DbtRuntimeError as error:
            hook = get_node_info()
            if hook.get("resource_type") == "operation":
                _append_to_error(error, self.context.committed.take_message(hook.get("unique_id")))
            raise


def _append_to_error(error: BaseException | None, message: str | None) -> None:
    """Adds the message to the error's own text, where dbt shows that; else it is a warning."""
    if message is None:
        return
    if isinstance(error, DbtRuntimeError | DbtInternalError):
        error.msg = f"{error.msg}\n{message}"
    else:
        logger.warning(message)


def _batch_id(config: Any) -> str | None:
    batch = getattr(getattr(config, "model", None), "batch", None)
    return batch.id if batch else None
