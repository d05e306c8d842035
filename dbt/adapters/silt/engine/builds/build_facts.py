"""Collects the facts of a build from the resolved texts of its statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.builds.origins import origin_of
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, TableState, facts_hash, local_day
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.sql.query import references
from dbt.adapters.silt.engine.sql.query.unrepeatable import Unrepeatable, unrepeatable
from dbt.adapters.silt.engine.sql.spans import Edit, edited
from dbt.adapters.silt.engine.sql.tokens import normal_text
from dbt.adapters.silt.engine.statements.resolve import expansion
from dbt.adapters.silt.engine.statements.resolve.information_schema import Listing
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved


def facts_of(build: Build, resolved: Resolved, zone: str) -> BuildFacts:
    """Returns the facts of a build.

    Args:
        resolved: the statement's texts.
        zone: the session's time zone.
    """
    inputs = resolved.inputs
    inner = [each for each in expansion.distinct(resolved.expanded) if each not in resolved.expanded]
    found = [_unrepeatable(each) for each in inner]
    found += [_of_part(build.text, resolved)] if build.text is not None else map(_unrepeatable, resolved.expanded)
    unknown = [f"it uses {part}" for each in found for part in each.parts]
    day = local_day(zone, build.at_ms) if any(each.depends_on_day for each in found) else None
    unknown += ["it uses current_date"] if day is None and any(each.depends_on_day for each in found) else []
    unknown += [
        reason for each in expansion.distinct(resolved.expanded) for reason in _unknown_relations(each, build.views)
    ]
    unseen = inputs.versions.keys() - inputs.snapshots.keys()
    unknown += [f"it reads {name}, whose columns are unknown" for name in sorted(unseen)]
    changed = build.changed.intersection((*inputs.versions, *inputs.definitions))
    unknown += [f"its pre-hook changes {name}, which it reads" for name in sorted(changed)]
    return BuildFacts(
        build.owner,
        build.code,
        build.environment,
        tuple(dict.fromkeys((*build.unknown, *unknown))),
        day,
        None if day is None else zone,
        {
            name: _state(inputs.snapshots[name], max(versions))
            for name, versions in inputs.versions.items()
            if name in inputs.snapshots
        },
    )


def _state(snapshot: Snapshot, version: int) -> TableState:
    return TableState.of(snapshot.metadata, version, snapshot.content)


def portable(build: Build, query: expansion.ExpandedQuery | None) -> str | None:
    """Returns the hash by which the same build of another schema is recognised; None if it cannot be another's.

    Args:
        query: the build's query, if it has one.
    """
    try:
        return facts_hash([build.portable, None if query is None else _without_names(query)])
    except _NotPortableError:
        return None


class _NotPortableError(Exception):
    """A text reads something that has no id."""


def _without_names(query: expansion.ExpandedQuery) -> str:
    """Returns the tokens of a text, with the ids of tables, and the texts of views and functions, as names.

    The last part of a name stays, because it may qualify columns.
    """
    if len(query.children) < len(query.text.text.scan.references):
        raise _NotPortableError
    edits = [
        Edit(reference.start, reference.end, quote(f"{_meaning(child)} {reference.parts[-1].lower()}"))
        for reference, child in query.children.items()
    ]
    edits += [Edit(call.start, call.end, quote(_called(each))) for call, each in query.calls.items()]
    return normal_text(edited(query.text.sql, edits))


def _meaning(child: expansion.Child) -> str:
    if isinstance(child, expansion.Table) and child.fixed is None:
        snapshot = child.log.snapshot()
        return origin_of(child.log, snapshot.metadata.id, snapshot.version).table_id
    if isinstance(child, expansion.View) and child.fingerprint is not None:
        return facts_hash([_without_names(child.query), list(child.columns)])
    raise _NotPortableError


def _called(call: expansion.FunctionCall) -> str:
    function = call.function
    own = [repr(each) for each in (function.parameters, function.returns, function.python)]
    return facts_hash([*own, function.body if function.python else _without_names(call.query)])


def facts_of_query(build: Build, resolved: Resolved, zone: str) -> BuildFacts:
    """Returns the facts that determine the rows of a query, with its definitions and files; else as `facts_of`."""
    facts = facts_of(build, resolved, zone)
    return replace(facts, definitions=resolved.inputs.definitions, files=resolved.inputs.fingerprints())


def facts_of_answer(build: Build, text: str, read: Mapping[DeltaLog, Snapshot]) -> BuildFacts:
    """Returns the facts that determine the rows of a query that is answered without Spark.

    Args:
        text: the query.
        read: the tables that it and the earlier queries of the same unit have read.
    """
    found = unrepeatable(text)
    uses = (*found.parts, *(["current_date"] if found.depends_on_day else []))
    tables = {log.name: _state(snapshot, snapshot.version) for log, snapshot in read.items()}
    unknown = (*build.unknown, *(f"it uses {part}" for part in uses))
    return BuildFacts(build.owner, build.code, build.environment, unknown, tables=tables)


def _unrepeatable(query: expansion.ExpandedQuery) -> Unrepeatable:
    # The facts have the inputs of the table functions `read_files` and `table_changes`.
    own = {each.start for each in query.calls} | {each.start for each in query.children}
    return unrepeatable(query.text.sql, frozenset(own))


def _of_part(text: str, resolved: Resolved) -> Unrepeatable:
    """Searches a text that the statement contains, whose calls its texts have resolved."""
    called = {call.parts for query in resolved.expanded for call in query.calls}
    own = {each.start for each in references.table_references(text)}
    own |= {each.start for each in references.function_calls(text) if each.parts in called}
    return unrepeatable(text, frozenset(own))


def _unknown_relations(query: expansion.ExpandedQuery, may_read_views: bool) -> Iterator[str]:
    for reference in query.text.text.scan.references:
        child = query.children.get(reference)
        name = ".".join(reference.parts)
        is_temporary = isinstance(child, expansion.View) and child.fingerprint is None
        if (child is None or is_temporary) and not may_read_views:
            yield f"it reads {name}, which is not in the warehouse"
        elif isinstance(child, expansion.VirtualRelation) and isinstance(child.source, Listing):
            yield f"it reads {name}"
    for call in query.calls.values():
        if call.function.python is not None and call.function.deterministic is not True:
            yield f"it calls {call.function.name}, a function in Python that is not declared DETERMINISTIC"
