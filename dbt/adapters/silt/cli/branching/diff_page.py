"""Renders differences of branches and tables as a page of HTML, in the style of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dbt.adapters.silt.cli.branching.differences import COLUMNS, has_samples, row_of, sample_rows, summary
from dbt.adapters.silt.cli.branching.nodes import LastWork
from dbt.adapters.silt.engine.arrow.branch_diff import RelationDiff
from dbt.adapters.silt.report.page import plain_page


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
        yield from _table(COLUMNS, map(row_of, found))
    for each in found:
        if has_samples(each):
            yield f"<h2>{escape(each.name)}</h2>"
            yield from _table(("row", "before", "after"), sample_rows(each))
    if state is not None:
        yield f"<p>Hash: <code>{escape(state)}</code></p>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    kinds = [' class="number"' if each.startswith("#") else "" for each in columns]
    heads = "".join(f"<th{kind}>{each.removeprefix('#')}</th>" for kind, each in zip(kinds, columns, strict=True))
    yield f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        yield f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
    yield "</tbody></table></div>"
