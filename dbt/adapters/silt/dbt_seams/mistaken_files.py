"""Finds the files of a mistake that dbt's parser refuses because something is missing or unknown.

dbt names neither the snapshot that lacks a config nor the model with an unknown kind of constraint, and no similar name
of a model that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.near_names import near_names

Files = Mapping[str, Path]
"""The project's files by their paths as a user writes them."""

CHECK_COLS: Final = "`all`, or a list of columns: `[name, amount]`"

_KINDS: Final = ("check", "not_null", "unique", "primary_key", "foreign_key", "custom")
_MAPPINGS: Final[Mapping[str, str]] = {
    "contract": "`contract: {enforced: true}`",
    "docs": "`docs: {show: true}`",
    "grants": "`grants: {select: [name]}`",
    "meta": "`meta: {key: value}`",
    "quoting": "`quoting: {identifier: true}`",
}
"""The configs that must be mappings, each with an example."""

_NO_MODELS: Final = re.compile(r"\{%-?\s*(?:macro|test)\b")
_SNAPSHOT: Final = re.compile(r"\{%-?\s*snapshot\s+(\w+)")
_SIMILAR: Final = 0.7
_SHOWN: Final = 5


def missing_advice(said: str, files: Files) -> str | None:
    """Returns the places of the mistake, or the name that is meant, and the remedy; None if they are not found.

    Args:
        said: the message of an error by dbt's parser.
        files: the project's files.
    """
    for pattern, advise in _ADVICE:
        found = pattern.search(said)
        if found is not None:
            return advise(found, files)
    return None


def _of_node(found: re.Match[str], files: Files) -> str | None:
    names = _node_names(files) if found["kind"] == "node" else _source_names(files)
    near = near_names(found["name"], set(names) - {found["name"]}, 1, _SIMILAR)
    return f"Did you mean `{near[0]}`?" if near else None


def _of_check(_: re.Match[str], files: Files) -> str | None:
    return _lacking(files, "check", "check_cols", CHECK_COLS)


def _of_timestamp(_: re.Match[str], files: Files) -> str | None:
    return _lacking(files, "timestamp", "updated_at", "the column with the time of a row's last change")


def _lacking(files: Files, strategy: str, needed: str, value: str) -> str | None:
    chosen = re.compile(rf"\bstrategy['\"]?\s*[:=]\s*['\"]?{strategy}\b")
    places = [
        f"{name}, line {at}"
        for name, text in _texts(files, ".sql", ".yml", ".yaml")
        if needed not in text
        for at, line in enumerate(text.splitlines(), 1)
        if chosen.search(line)
    ]
    return f"`strategy: {strategy}` is set in {_shown(places)}: add `{needed}`, {value}" if places else None


def _of_keys(_: re.Match[str], files: Files) -> str | None:
    places = [
        f"{name} lacks {listed(lacks)}"
        for name, text in _texts(files, ".sql")
        if _SNAPSHOT.search(text)
        for lacks in [[key for key in ("strategy", "unique_key") if key not in text]]
        if lacks
    ]
    return f"{_shown(places)}: add it to the config" if places else None


def _of_incremental(_: re.Match[str], files: Files) -> str | None:
    contracts = " ".join(text for _, text in _texts(files, ".yml", ".yaml") if "contract" in text)
    places = [
        name
        for name, text in _texts(files, ".sql")
        if "incremental" in text and re.search(rf"\b{re.escape(Path(name).stem)}\b", contracts)
        if not re.search("append_new_columns|['\"]fail['\"]", text)
    ]
    remedy = "add `on_schema_change='append_new_columns'`, or `'fail'`, to its config"
    return f"{_shown(places)} is incremental and has a contract: {remedy}" if places else None


def _of_constraint(_: re.Match[str], files: Files) -> str | None:
    places = [
        f"{name}, line {line}: `{kind}`"
        for name, text in _texts(files, ".yml", ".yaml")
        for kind, line in _constraint_kinds(text)
        if kind not in _KINDS
    ]
    return f"{_shown(places)} is no type of constraint. The types are {listed(_KINDS)}" if places else None


def _of_cycle(_: re.Match[str], __: Files) -> str:
    return "These nodes read each other by `ref`: remove one of the references, or read the rows from a source"


def _of_reference(_: re.Match[str], __: Files) -> str:
    return "Write the name in quotes: `{{ ref('name') }}`"


def _of_mapping(found: re.Match[str], files: Files) -> str | None:
    value = found["value"].strip("'\"")
    for key, example in _MAPPINGS.items():
        given = re.compile(rf"\b{key}['\"]?\s*[:=]\s*['\"]?{re.escape(value)}\b", re.IGNORECASE)
        places = [
            f"{name}, line {at}"
            for name, text in _texts(files, ".sql", ".py", ".yml", ".yaml")
            for at, line in enumerate(text.splitlines(), 1)
            if given.search(line)
        ]
        if places:
            return f"`{key}` is {value} in {_shown(places)}: it must be a mapping, {example}"
    return None


_ADVICE: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Files], str | None]], ...]] = (
    (re.compile(r"depends on a (?P<kind>node|source) named '(?P<name>[^']+)' which was not found"), _of_node),
    (re.compile("check strategy must specify a check_cols"), _of_check),
    (re.compile("timestamp strategy must specify an updated_at"), _of_timestamp),
    (re.compile("Snapshots must be configured with a 'strategy' and 'unique_key'"), _of_keys),
    (
        re.compile("Models materialized as incremental with contracts enabled must set on_schema_change"),
        _of_incremental,
    ),
    (re.compile("Invalid constraint type on "), _of_constraint),
    (re.compile("Found a cycle: "), _of_cycle),
    (re.compile(r"name argument to ref\(\) must be a string, got .*Undefined"), _of_reference),
    (re.compile(r"expected dict, got (?P<value>\S+)"), _of_mapping),
)
"""dbt's messages, each with the function that finds the mistake."""


def _texts(files: Files, *suffixes: str) -> Iterator[tuple[str, str]]:
    for name, path in files.items():
        if path.suffix in suffixes:
            yield name, path.read_text(encoding="utf-8", errors="replace")


def _node_names(files: Files) -> Iterator[str]:
    """Yields the names of models, seeds and snapshots."""
    for name, text in _texts(files, ".sql", ".py", ".csv"):
        if not _NO_MODELS.search(text):
            yield from _SNAPSHOT.findall(text) or [Path(name).stem]
    for document in _documents(files):
        yield from _names(document.get("snapshots"))


def _source_names(files: Files) -> Iterator[str]:
    for document in _documents(files):
        for source in document.get("sources") or ():
            yield from (f"{source.get('name')}.{table}" for table in _names(source.get("tables")))


def _names(entries: Any) -> Iterator[str]:
    yield from (str(each.get("name")) for each in entries or ())


def _documents(files: Files) -> Iterator[Mapping[str, Any]]:
    for _, text in _texts(files, ".yml", ".yaml"):
        document = yaml.safe_load(text)
        if isinstance(document, Mapping):
            yield document


def _constraint_kinds(text: str) -> Iterator[tuple[str, int]]:
    """Yields the type of each constraint in a properties file, with its line."""
    nodes = [yaml.compose(text)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            nodes += [value for _, value in node.value]
            for key, value in node.value:
                if key.value == "constraints" and isinstance(value, yaml.SequenceNode):
                    yield from (kind for each in value.value for kind in _kind(each))


def _kind(constraint: yaml.Node) -> Iterator[tuple[str, int]]:
    for key, value in constraint.value if isinstance(constraint, yaml.MappingNode) else ():
        if key.value == "type":
            yield str(value.value), value.start_mark.line + 1


def _shown(places: list[str]) -> str:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return "; ".join(places[:_SHOWN]) + more
