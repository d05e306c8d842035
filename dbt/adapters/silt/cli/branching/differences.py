"""Renders differences of branches and tables: as blocks, as JSON, as Markdown for a comment, and as a page of HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from dbt.adapters.silt.cli.branching.nodes import LastWork
from dbt.adapters.silt.cli.output.answers import UNKNOWN, Block, Rows, count
from dbt.adapters.silt.engine.arrow.branch_diff import EQUAL, RelationDiff
from dbt.adapters.silt.engine.arrow.table_diff import Sample, TableDiff
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.report.page import plain_page

_COLUMNS: Final = ("relation", "kind", "change", "#rows", "#added", "#removed", "#changed", "columns")
_MOST_LINES: Final = 60
_LONGEST: Final = 40
_EQUAL_NAMES: Final = 10


def document(title: str, state: str | None, found: Sequence[RelationDiff]) -> Mapping[str, Any]:
    """Returns the differences as a JSON value."""
    return {"compared": title, "hash": state, "relations": [_json(each) for each in found]}


def blocks(title: str, state: str | None, found: Sequence[RelationDiff]) -> list[Block]:
    """Returns the differences for people."""
    if not found:
        return [f"{title}: nothing has changed{_hash(state)}"]
    shown: list[Block] = [Rows(_COLUMNS, [_row(each) for each in found], f"{title}: {summary(found)}")]
    shown += [Rows(("row", "before", "after"), list(_samples(each)), each.name) for each in found if _has_samples(each)]
    return [*shown, _hash(state).removeprefix("; ")] if state is not None else shown


def markdown(title: str, state: str | None, found: Sequence[RelationDiff], work: LastWork | None = None) -> list[str]:
    """Returns the lines of a comment, at most 60."""
    lines = [f"### {_cell(title)}: {summary(found) if found else 'nothing has changed'}", ""]
    different = [each for each in found if each.change != EQUAL]
    if different:
        lines += _table(_COLUMNS, (_row(each) for each in different))
    for each in different:
        if _has_samples(each):
            lines += ["", f"**{_cell(each.name)}**", "", *_table(("row", "before", "after"), _samples(each))]
    end = [f"{name}: {', '.join(f'`{_cell(each)}`' for each in names)}" for name, names in _ends(found, work).items()]
    end += [] if work is None else [f"Last dbt command: {_cell(str(work))}"]
    end += [] if state is None else [f"Hash: `{state}`"]
    room = _MOST_LINES - len(end) - 1
    if len(lines) > room:
        lines = [*lines[: room - 2], "", f"{number_of(len(lines) - room + 2, 'line')} left out: run `silt diff`"]
    return [*lines, "", *end] if end else lines


def summary(found: Sequence[RelationDiff]) -> str:
    """Returns how many relations were changed in each way."""
    counted = Counter(each.change for each in found)
    return ", ".join(f"{number} {change}" for change, number in counted.items())


def _ends(found: Sequence[RelationDiff], work: LastWork | None) -> Mapping[str, Sequence[str]]:
    """Returns the names of the relations that were built and are equal, and of the nodes that were reused."""
    same = [each.name for each in found if each.change == EQUAL]
    named = {"Equal": same, "Reused": [] if work is None else work.reused}
    return {title: _some(names) for title, names in named.items() if names}


def _some(names: Sequence[str]) -> Sequence[str]:
    left = len(names) - _EQUAL_NAMES
    return [*names[:_EQUAL_NAMES], f"{left} more"] if left > 0 else names


def _hash(state: str | None) -> str:
    return "" if state is None else f"; hash {state}"


def _row(each: RelationDiff) -> list[str]:
    found = each.table
    if found is None:
        return [each.name, each.kind, each.change, count(each.rows), UNKNOWN, UNKNOWN, UNKNOWN, ""]
    numbers = (found.rows_after, found.added, found.removed, found.changed)
    return [each.name, each.kind, each.change, *map(count, numbers), "; ".join(_columns(found))]


def _columns(found: TableDiff) -> Iterator[str]:
    yield from (f"+{name}" for name in found.added_columns)
    yield from (f"-{name}" for name in found.removed_columns)
    yield from (f"{name}: {before} -> {after}" for name, before, after in found.retyped)
    yield from (f"{before} renamed {after}" for before, after in found.renamed)
    for name, number in sorted(found.columns.items(), key=lambda each: (-each[1], each[0])):
        yield f"{name} {100 * number / found.changed:.3g} %"


def _has_samples(each: RelationDiff) -> bool:
    return each.table is not None and bool(each.table.samples)


def _samples(each: RelationDiff) -> Iterator[list[str]]:
    for sample in [] if each.table is None else each.table.samples:
        yield [sample.kind, _shown(sample.before), _shown(sample.after)]


def _shown(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _table(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    heads = [each.removeprefix("#") for each in columns]
    rule = ["---:" if each.startswith("#") else "---" for each in columns]
    return [f"| {' | '.join(map(_cell, row))} |" for row in (heads, rule, *rows)]


def _cell(text: str) -> str:
    """Returns a text that is one line and ends no cell of a table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _json(each: RelationDiff) -> Mapping[str, Any]:
    found = each.table
    shown: dict[str, Any] = {"name": each.name, "kind": each.kind, "change": each.change, "rows": each.rows}
    if found is None:
        return shown
    return {
        **shown,
        "rows": found.rows_after,
        "rows_before": found.rows_before,
        "key": list(found.key),
        "row_ids": found.by_row_ids,
        "columns": {
            "added": list(found.added_columns),
            "removed": list(found.removed_columns),
            "retyped": [{"name": name, "before": old, "after": new} for name, old, new in found.retyped],
            "renamed": [{"before": old, "after": new} for old, new in found.renamed],
        },
        "added": found.added,
        "removed": found.removed,
        "changed": found.changed,
        "changed_by_column": dict(found.columns),
        "samples": [_sample(sample) for sample in found.samples],
        "files_read": found.files_read,
    }


def _sample(sample: Sample) -> Mapping[str, Any]:
    def plain(row: Mapping[str, Any] | None) -> Any:
        return None if row is None else {name: None if each is None else str(each) for name, each in row.items()}

    return {"kind": sample.kind, "before": plain(sample.before), "after": plain(sample.after)}


def page(title: str, state: str | None, found: Sequence[RelationDiff], work: LastWork | None = None) -> list[str]:
    """Returns the lines of a self-contained page without a script."""
    return [plain_page(title, "\n".join(_body(title, state, found, work)))]


def _body(title: str, state: str | None, found: Sequence[RelationDiff], work: LastWork | None) -> Iterator[str]:
    yield f"<h1>{escape(title)}: {escape(summary(found)) if found else 'nothing has changed'}</h1>"
    if work is not None:
        yield f"<p>Last dbt command: {escape(str(work))}</p>"
    if work is not None and work.reused:
        yield f"<p>Reused: {escape(', '.join(work.reused))}</p>"
    if found:
        yield from _html_table(_COLUMNS, map(_row, found))
    for each in found:
        if _has_samples(each):
            yield f"<h2>{escape(each.name)}</h2>"
            yield from _html_table(("row", "before", "after"), _samples(each))
    if state is not None:
        yield f"<p>Hash: <code>{escape(state)}</code></p>"


def _html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    kinds = [' class="number"' if each.startswith("#") else "" for each in columns]
    heads = "".join(f"<th{kind}>{each.removeprefix('#')}</th>" for kind, each in zip(kinds, columns, strict=True))
    yield f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        yield f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
    yield "</tbody></table></div>"
