"""Keeps the current node of each thread, and adds its commits to its errors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtInternalError, DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.runs.node_context import NodeContext
from dbt.adapters.silt.runs.tests_not_run import AuditedTests

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

    from dbt.adapters.silt.runs.committed_work import CommittedBatches

logger = AdapterLogger("Silt")

_BEFORE_THE_FIRST_RUN = (
    "It is this node's own relation, which the run creates: read `{{ this }}` only inside `{% if is_incremental() %}`, "
    "with the parentheses"
)
_CREATORS = ("model", "seed", "snapshot")
_ON_A_THREAD = "Exception on worker thread. "
"""The prefix that dbt adds to the error of a batch."""

_QUERY_TAGS = ("query_tag", "query_tags")
"""Configs by which projects for other adapters name a node's statements."""


class CurrentNode:
    """The node that each thread of a dbt command is running.

    Args:
        batches: the commits of the batches of microbatch models.

    Attributes:
        audited: the tests that have judged a node's own write before its commit.
    """

    def __init__(self, batches: CommittedBatches) -> None:
        self.audited = AuditedTests()
        self._batches = batches
        self._creators: Mapping[str, Mapping[str, Any]] = {}
        self._parents: Mapping[str, Sequence[str]] = {}
        self._local = threading.local()

    @property
    def context(self) -> NodeContext:
        """This thread's context."""
        if not hasattr(self._local, "context"):
            self._local.context = NodeContext()
        context: NodeContext = self._local.context
        return context

    @contextlib.contextmanager
    def scope(self, node: Any, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        """Gives a node, several hooks or an operation on this thread a context of its own.

        An error that ends the block lists the commits. So does a model with several batches, if some of them failed.

        Args:
            node: dbt's node; None for hooks and operations.
            is_cancelled: whether the thread's connection was cancelled.

        Raises:
            DbtRuntimeError: if no batch of a model completed; dbt's own result would not contain the reason.
        """
        outer, self._local.context = self.context, NodeContext(node)
        try:
            yield
            self._end_batches(node, may_raise=True)
        except BaseException as error:
            message = self.context.committed.take_all_messages()
            _append_to_error(error, message)
            if message is not None and is_cancelled():
                # dbt shows no node's error of an interrupted command.
                logger.warning(f"{get_node_info().get('unique_id') or 'Cancelled'}: {message}")
            if self.context.batch_id is not None:
                self._batches.fail(node.unique_id, self.context.batch_id, str(error))
            self._end_batches(node, may_raise=False)
            raise
        finally:
            self._local.context = outer

    def know(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        """Keeps the project's nodes, which create relations.

        Args:
            nodes: as dbt passes them to macros.
        """
        if not self._creators:
            created = [each for each in nodes if each.get("resource_type") in _CREATORS]
            self._creators = {_relation(each["database"], each["schema"], each["alias"]): each for each in created}
            self._parents = {
                each["unique_id"]: tuple((each.get("depends_on") or {}).get("nodes") or ()) for each in created
            }

    def explained(self, error: Exception) -> Exception:
        """Returns the error, with its remedy if this thread's node reads a relation before a node creates it."""
        node = self.context.node
        if not isinstance(error, RelationNotFoundError) or node is None or error.table is None:
            return error
        remedy, creator = None, self._creators.get(error.table)
        if self.context.is_writing_node and error.table == _relation(node.database, node.schema, node.alias):
            remedy = _BEFORE_THE_FIRST_RUN
        elif creator is not None and creator["unique_id"] in self._ancestors(node):
            # `dbt show --inline` has no node that can be selected.
            selected = creator["name"] if node.resource_type == "sql_operation" else node.name
            remedy = f"Build it first: `dbt build --select +{selected}`"
        elif creator is not None:
            remedy = (
                f"The {creator['resource_type']} {creator['name']} of this project creates it: write "
                f"`{{{{ ref('{creator['name']}') }}}}`, so that dbt builds it first"
            )
        if remedy is None:
            return error
        return RelationNotFoundError(error.problem, table=error.table, remedy=remedy)

    def _ancestors(self, node: Any) -> set[str]:
        """Returns the ids of the nodes that a node reads, itself or through views and ephemeral models."""
        found: set[str] = set()
        left = list(getattr(node.depends_on, "nodes", ()))
        while left:
            each = left.pop()
            if each not in found:
                found.add(each)
                left.extend(self._parents.get(each, ()))
        return found

    def _end_batches(self, node: Any, may_raise: bool) -> None:
        """If all batches of a model have run, reports the failed batches.

        If the results of a model were lost in an error, a retry would repeat the batches that an earlier run has done.
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
        """Notes that the materialization of this thread's node begins, with this configuration."""
        self.context.tags, self.context.batch_id = _node_tags(config), _batch_id(config)

    def end(self) -> None:
        """Notes that the materialization of this thread's node completed."""
        self.context.ended = True

    def leave(self) -> None:
        """Notes that dbt has finished this thread's node; dbt has already passed over the error of a failed batch."""
        context, node_id = self.context, get_node_info().get("unique_id")
        if context.batch_id is None:
            return
        if context.ended:
            self._batches.end(str(node_id))
        else:
            self._batches.fail(str(node_id), context.batch_id, context.failure)
            _append_to_error(None, context.committed.take_message(node_id))

    def on_event(self, event: EventMsg) -> None:
        """Keeps the reason why this thread's batch failed, because dbt only logs it."""
        if event.info.name == "GenericExceptionOnRun" and self.context.batch_id is not None:
            self.context.failure = str(getattr(event.data, "exc", "")).removeprefix(_ON_A_THREAD)

    @contextlib.contextmanager
    def hook_errors(self) -> Iterator[None]:
        """Adds the commits of an on-run hook to an error in the block, which only dbt handles afterwards."""
        try:
            yield
        except DbtRuntimeError as error:
            hook = get_node_info()
            if hook.get("resource_type") == "operation":
                _append_to_error(error, self.context.committed.take_message(hook.get("unique_id")))
            raise


def _relation(*parts: Any) -> str:
    return ".".join(str(part).lower() for part in parts)


def _append_to_error(error: BaseException | None, message: str | None) -> None:
    """Appends the message to the error's text if dbt shows that, or else logs it as a warning."""
    if message is None:
        return
    if isinstance(error, DbtRuntimeError | DbtInternalError):
        error.msg = f"{error.msg}\n{message}"
    else:
        logger.warning(message)


def _batch_id(config: Any) -> str | None:
    batch = getattr(getattr(config, "model", None), "batch", None)
    return batch.id if batch else None


def _node_tags(config: Any) -> tuple[str, ...]:
    """Returns the tags of the node in a configuration that dbt is about to run; empty without a node."""
    node = getattr(config, "model", None)
    if node is None:
        return ()
    given = (node.config.get(name) for name in _QUERY_TAGS)
    return (*node.tags, *(str(each) for each in given if each))
