"""Builds the tags of a node's Spark jobs from the node, its own tags and dbt's query comment.

The comment is the user's own text. It is added to the statement in dbt's log, to the commit and to the jobs, but not to
the parser's input: a `/*` in it would open a second comment, and its text, which differs from run to run, would turn
each statement into a new unit of work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

QUERY_TAGS = ("query_tag", "query_tags")
"""Configs by which projects for other adapters name a node's statements."""


def node_tags(config: Any) -> tuple[str, ...]:
    """Returns the tags of the node in a configuration that dbt is about to run; empty without a node."""
    node = getattr(config, "model", None)
    if node is None:
        return ()
    given = (node.config.get(name) for name in QUERY_TAGS)
    return (*node.tags, *(str(each) for each in given if each))


def job_tags(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Returns the comments as tags of Spark's jobs, which are not empty and contain no comma; each once, in order."""
    written = (re.sub(r"\s*,\s*", "; ", " ".join(text.split())).strip() for text in texts if text)
    return tuple(dict.fromkeys(tag for tag in written if tag))
