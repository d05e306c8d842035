"""Random names and texts in each place of a view's document and of a table's log that is rendered: as SQL, on a
terminal, as JSON and on the page of a report.

python -m tests.security.fuzz_names FIRST SEEDS    tries seeds, prints the problems and the counts
"""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dbt.adapters.silt.cli import history, show
from dbt.adapters.silt.cli.output.answers import Answer
from dbt.adapters.silt.cli.output.rendering import show as render
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, name_parts
from dbt.adapters.silt.engine.kernel.identifiers import quote, split_name, string_literal
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import ViewColumn
from dbt.adapters.silt.engine.sql.tokens import Kind, string_value, tokenize
from dbt.adapters.silt.records.run_history import newest_commits
from dbt.adapters.silt.report import table_content
from dbt.adapters.silt.report.tables import table_json, to_json
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.security import attacks
from tests.security.fuzz import refused
from tests.security.test_terminal import OBEYED, OWN, Terminal
from tests.unit.engine.catalog.conftest import make_table

SECONDS: Final = 5
PARTS: Final = (
    *("${env:PATH}", "${", "}", "$", "`", "``", "'", '"', "\\", "\\'", "\\u0060", ";", "--", "/*", "*/", "/*+", "#"),
    *("\n", "\r", "\t", "\0", "\x1b[2J", "\x1b]0;x\x07", "\x7f", "\x9b31m", "\u200b", "\u202e", "\u2028", "\ufeff"),
    *("{{ 7*7 }}", "{% raw %}", "</script>", "<!--", "<img src=x onerror=x>", "&lt;", "%2e%2e", "%", "../", "/", ".."),
    *(".", "@v1", "=", ":", "*", "?", "[", "|", " ", "é", "e\u0301", "İ", "\u00df", "😀", "_delta_log", ".json", "a"),
    *("select", "drop table main.good", "r'", "X'", "x" * 300, "\ud83d", "1", "-", "__HIVE_DEFAULT_PARTITION__"),
)
_NAME: Final = RelationName("silt", "main", "t")


@dataclass(frozen=True)
class Texts:
    """The texts of a seed, without half characters, which no document can contain."""

    given: Sequence[str]

    @classmethod
    def drawn(cls, chance: random.Random) -> Texts:
        """Draws texts of a few parts each."""
        return cls(tuple("".join(chance.choices(PARTS, k=chance.choice((1, 2, 3, 6)))) for _ in range(_TEXTS)))

    @property
    def whole(self) -> list[str]:
        return [each.encode(errors="replace").decode() for each in self.given]


def written_into_sql(texts: Texts) -> None:
    """Checks that a name and a text are a token each, of the same value."""
    for text in texts.whole:
        found = tokenize(f"select {quote(text)} as {quote(text)}, {string_literal(text)}")
        assert [token.identifier for token in found[1:4:2]] == [text, text] and len(found) == 7, found
        assert found[5].kind is Kind.STRING and string_value(found[5]) == text, found
        assert split_name(f"{quote(text)}.{quote(text)}") == (text, text)
        assert name_parts(f"{quote(text)}.a") == [text, "a"]


def stored_in_a_view(texts: Texts) -> None:
    """Checks that a document keeps its texts, and that its answer cannot control a terminal."""
    given = texts.whole
    columns = tuple(ViewColumn(name, name, (((name, "a"), name),)) for name in given)
    view = View(_NAME, given[0], columns, given[1], {given[2]: given[3]}, "silt", "main", 1, tuple(given))
    assert parse_view(serialize_view(view), _NAME) == view
    _printed(lambda: show.view_answer(view))


def stored_in_a_table(texts: Texts) -> None:
    """Checks the answers and the page of a table whose names, texts and values are all of these."""
    given = texts.whole
    first, *others = dict.fromkeys(given)
    fields = [StructField(name, PrimitiveType("string"), metadata={"comment": name}) for name in (first, *others)]
    schema = StructType((*fields, StructField("s", StructType(tuple(fields)))))
    assert StructType.from_json(schema.to_json()) == schema
    stats = json.dumps({"numRecords": 1, "minValues": {first: given[0]}, "maxValues": {first: given[0]}})
    facts = {"runId": given[0], "nodeId": given[1], "target": given[2], "invocationId": given[3]}
    info = CommitInfo(
        1, given[0], {given[1]: given[2]}, user_metadata=given[3], engine_info=given[0], extra={"dbt": facts}
    )
    properties = {given[0]: given[1], f"delta.constraints.{given[2]}": given[3]}
    metadata = Metadata("a", schema.to_json(), (first,), properties, given[0], given[1], created_time=1)
    add = AddFile(given[0], {first: given[1]}, 1, 1, stats=stats, tags={given[2]: given[3]})
    store = MemoryStore()
    store.make_folder(LOG_FOLDER)
    store.put(commit_path(0), serialize([info, Protocol(1, 2), metadata, add]))
    log = DeltaLog(store, f"silt.main.{given[0]}", FixedClock())
    refused([log.snapshot])
    _printed(lambda: show.answer(log, log.snapshot()))
    _printed(lambda: history.answer(log, list(newest_commits(log))))
    refused([lambda: _on_page(log)])


def _on_page(log: DeltaLog) -> None:
    body = table_json(log.name, table_content.content_of(log, ()))
    text = to_json(body)
    assert not set("<>&\u2028\u2029\n") & set(text) and json.loads(text)["n"] == log.name, text


def _printed(answer: Callable[[], Answer]) -> None:
    found: list[Answer] = []
    refused([lambda: found.append(answer())])
    for each in found:
        plain, as_json, terminal = io.StringIO(), io.StringIO(), Terminal()
        render(each, False, plain), render(each, True, as_json), render(each, False, terminal)
        assert not OBEYED.findall(plain.getvalue() + as_json.getvalue() + OWN.sub("", terminal.getvalue()))
        json.loads(as_json.getvalue())


def named_a_relation(texts: Texts) -> None:
    """Checks that a name is refused, or names one table in its schema, in folders and in an object store."""
    for text in texts.given:
        for store in (MemoryStore(), MemoryObjectStore()):
            refused([partial(_name, store, text)])


def _name(store: Store, text: str) -> None:
    catalog = Catalog({"silt": store}, FixedClock())
    name = RelationName("silt", "main", text)
    catalog.create_schema("silt", "main")
    make_table(catalog, name)
    assert [each.name for each in Catalog({"silt": store}, FixedClock()).relations("silt", "main")] == [name]
    catalog.put_view(View(name.sibling(f"{name.identifier} v"), "select 1"))
    assert not [each.path for each in store.files_below("") if ".." in each.path.split("/")]


_TEXTS: Final = 4
PLACES: Final = (written_into_sql, stored_in_a_view, stored_in_a_table, named_a_relation)


def attack(seed: int) -> int:
    """Puts texts into each place; returns the number of texts.

    Raises:
        AssertionError: if a place changes a text, obeys it or crashes.
    """
    texts = Texts.drawn(random.Random(seed))
    for place in PLACES:
        try:
            with attacks.limited(SECONDS):
                place(texts)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {texts.given!r}: {place.__name__}: {error!r}"[:3000]) from error
    return len(texts.given)


def main(first: str, seeds: str) -> int:
    """Tries seeds, and prints the problems and the counts; returns 1 if there are any problems."""
    return attacks.tell(attack, range(int(first), int(first) + int(seeds)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
