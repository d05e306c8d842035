"""Hashes what determines the code of each node before dbt compiles it: its text, configs and macros, and the variables.

Two commands with equal hashes compile a node to the same code, unless the code depends on rows, which are inputs of the
node, or on the time. The query of a data test is compiled before dbt does, if it judges rows before their commit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dbt.compilation import Compiler

_DEFINED: Final = ("model", "seed", "snapshot", "function", "operation")
_VARIABLES: Final = re.compile(r"\bvar\b")
_ENVIRONMENT: Final = re.compile(r"\benv_var\b")
_VALUE: Final = re.compile(r"""\{\{-?\s*(var|env_var)\(\s*['"](\w+)['"][^{}]*\}\}""")
_OWN: Final = "silt_"


class Definitions:
    """The definitions of the nodes of a project.

    Args:
        manifest: dbt's manifest.
        variables: the variables of the project and of the command.
    """

    def __init__(self, manifest: Any, variables: Mapping[str, Any]) -> None:
        self._manifest = manifest
        self._variables = {name: each for name, each in variables.items() if not name.startswith(_OWN)}
        self._known: dict[str, str] = {}
        self._macros: dict[str, frozenset[str]] = {}

    @cached_property
    def all(self) -> Mapping[str, str]:
        """The hash of each node and on-run hook, by its unique id."""
        return {each: self._of(node) for each, node in self._nodes.items() if node.resource_type in _DEFINED}

    @cached_property
    def _nodes(self) -> Mapping[str, Any]:
        return {**self._manifest.nodes, **getattr(self._manifest, "functions", {})}

    def code(self, unique_id: str) -> str:
        """Returns what names the files that a node reads: its raw code with the values of variables, the macros that it
        calls, and its sources, with the sources of its ephemeral parents; empty if the node no longer exists.
        """
        node = self._nodes.get(unique_id)
        if node is None:
            return ""
        parents = getattr(node.depends_on, "nodes", ())
        sources = (
            str(self._manifest.sources[each].relation_name) for each in parents if each in self._manifest.sources
        )
        known = (self._manifest.nodes.get(each) for each in parents)
        inner = (self.code(each.unique_id) for each in known if each is not None and each.is_ephemeral_model)
        texts = (str(node.raw_code or ""), *self._texts_of_macros(node), *sources, *inner)
        return _VALUE.sub(self._value, "\n".join(texts))

    def _value(self, used: re.Match[str]) -> str:
        environment = getattr(self._manifest, "env_vars", {})
        values = self._variables if used[1] == "var" else environment
        return str(values.get(used[2], used[0]))

    def _of(self, node: Any) -> str:
        """Returns the hash of a node, which contains its ephemeral parents."""
        if node.unique_id not in self._known:
            self._known[node.unique_id] = ""  # a cycle is dbt's error
            texts = [str(node.raw_code or ""), *self._texts_of_macros(node)]
            config = node.config.to_dict(omit_none=True)
            columns = {name: each.to_dict(omit_none=True) for name, each in node.columns.items()}
            own = (node.relation_name, _content(node), config, columns, texts, self._parents(node))
            settings = self._settings([*texts, json.dumps(config, default=str)])
            self._known[node.unique_id] = f"{_hash(own)}/{_hash(settings) if any(settings) else ''}"
        return self._known[node.unique_id]

    def _parents(self, node: Any) -> list[str]:
        found = (self._manifest.nodes.get(each) for each in sorted(getattr(node.depends_on, "nodes", ())))
        return [self._of(each) for each in found if each is not None and each.is_ephemeral_model]

    def _texts_of_macros(self, node: Any) -> list[str]:
        called = frozenset[str]().union(*map(self._reached, node.depends_on.macros))
        return [str(self._manifest.macros[each].macro_sql) for each in sorted(called)]

    def _reached(self, macro: str) -> frozenset[str]:
        """Returns a macro with all macros that it calls."""
        if macro not in self._macros:
            self._macros[macro] = frozenset()
            found, left = set[str](), [macro]
            while left:
                each = left.pop()
                if each not in found and each in self._manifest.macros:
                    found.add(each)
                    left.extend(self._manifest.macros[each].depends_on.macros)
            self._macros[macro] = frozenset(found)
        return self._macros[macro]

    def _settings(self, texts: Iterable[str]) -> list[Any]:
        """Returns the values that the texts may read."""
        whole = "\n".join(texts)
        variables = self._variables if _VARIABLES.search(whole) else {}
        environment = getattr(self._manifest, "env_vars", {}) if _ENVIRONMENT.search(whole) else {}
        return [variables, environment]


def code_of(definition: str) -> str:
    """Returns the part of a definition's hash that no variable of a command changes."""
    return definition.partition("/")[0]


def settings_of(definition: str) -> str:
    """Returns the part of a definition's hash for the variables and the environment that it may read."""
    return definition.partition("/")[2]


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _content(node: Any) -> str:
    """Returns a hash of a node's file, as dbt has no hash of a large seed."""
    if node.resource_type == "seed":
        path = Path(node.root_path or ".", node.original_file_path)
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return str(node.checksum.checksum)


def compiled_query(test: Any, config: Any, manifest: Any) -> str:
    """Returns the query of a data test as dbt would compile it, with the queries of ephemeral models.

    Args:
        test: the test's node of the manifest, which is not changed: dbt compiles it again when it runs the test.
        config: dbt's configuration of the command.
        manifest: dbt's manifest.

    Raises:
        DbtRuntimeError: if the test cannot be compiled.
    """
    compiled = Compiler(config).compile_node(deepcopy(test), manifest, write=False)
    return str(compiled.compiled_code)
