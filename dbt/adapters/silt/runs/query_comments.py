"""Builds the tags of a node's Spark jobs from the node, its own tags and dbt's query comment.

The comment is the user's own text. It goes to dbt's log with the statement, into the commit and to the jobs, and never
to the parser: a `/*` in it would open a second comment, and its text, which differs from run to run, would make each
statement a new unit of work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

QUERY_TAGS = ("query_tag", "query_tags")
"""Configs by which projects for other adapters name a node's statements."""


def node_tags(config: Any) -> tuple[str, ...]:
    """The tags of the node that dbt is about to run, by its configuration; none where it has no node."""
    node = getattr(config, "model", None)
    if node is None:
        return ()
    given = (node.config.get(name) for name in QUERY_TAGS)
    return (*node.tags, *(str(each) for each in given if each))


def job_tags(texts: Iterable[str | None]) -> tuple[str, ...]:
    """The texts as tags of Spark's jobs, which are not empty and hold no comma; each once, in order."""
    written = (re.sub(r"\s*,\s*", "; ", " ".join(text.split())).strip() for text in texts if text)
    return tuple(dict.fromkeys(tag for tag in written if tag))
