"""Reads docstrings and formats tables for the generated pages."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import Field
from typing import Any

GENERATED = "<!-- Written by docs/generate.py: change the code that it reads. -->\n"
_TEXTS = {"str": "text", "int": "number", "bool": "true or false"}


def one_line(text: str) -> str:
    """Returns a text on one line."""
    return " ".join(text.split())


def kind_of(attribute: Field[Any]) -> str:
    """Returns the type of a field, in words."""
    return " or ".join(kinds_of(attribute))


def kinds_of(attribute: Field[Any]) -> list[str]:
    """Returns the types of a field other than None, each in words."""
    parts = [part.strip() for part in str(attribute.type).split("|")]
    return list(dict.fromkeys(_kind_name(part) for part in parts if part != "None"))


def _kind_name(part: str) -> str:
    if part.startswith(("dict", "Mapping")):
        return "mapping"
    return "list" if part.startswith("list") else _TEXTS.get(part, "any")


def described_attributes(owner: type) -> dict[str, str]:
    """Returns the descriptions in the Attributes section of a class by name; two names may share a description."""
    section = (inspect.getdoc(owner) or "").partition("Attributes:\n")[2]
    found: dict[str, str] = {}
    for names, text in re.findall(r"^ {4}(\w[\w, ]*): ((?:.|\n {8})+)", section, re.MULTILINE):
        found.update(dict.fromkeys(names.split(", "), one_line(text)))
    return found


def attribute_docstrings(owner: type) -> dict[str, str]:
    """Returns the docstrings below the attributes of a class, by the attribute's name."""
    (body,) = (each.body for each in ast.parse(inspect.getsource(owner)).body if isinstance(each, ast.ClassDef))
    pairs = itertools.pairwise(body)
    return {
        node.targets[0].id: one_line(below_.value.value)
        for node, below_ in pairs
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(below_, ast.Expr)
        and isinstance(below_.value, ast.Constant)
    }


def sentence(text: str) -> str:
    """Returns a text as a sentence, with a full stop and, unless it begins with dbt, a capital letter."""
    text = text.strip().rstrip(".")
    return f"{text if text.startswith('dbt') else text[:1].upper() + text[1:]}." if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table, with each `|` in a cell escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
