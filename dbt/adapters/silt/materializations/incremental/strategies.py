"""The names of incremental strategies: this adapter's, and those of the project's macros."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from dbt_common.exceptions import CompilationError

STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "replace_where", "microbatch")

_MACRO = re.compile(r"get_incremental_(\w+)_sql")
_LIKE_ENOUGH = 0.6


def check_strategy(strategy: str, macros: Iterable[str], project: str) -> None:
    """Passes where a macro writes the strategy's statements.

    Args:
        strategy: the config `incremental_strategy`, or `default`.
        macros: the names that a model may use.
        project: the name of the project.

    Raises:
        CompilationError: there is no such macro; the message begins as dbt's own does.
    """
    macro = f"get_incremental_{strategy.replace('+', '_')}_sql"
    names = list(macros)
    if macro in names:
        return
    own = {each.replace("+", "_") for each in STRATEGIES} | {"default"}
    found = [match[1] for match in map(_MACRO.fullmatch, names) if match and match[1] not in own]
    known = [*STRATEGIES, *sorted(found)]
    nearest = difflib.get_close_matches(strategy.lower(), known, 1, _LIKE_ENOUGH)
    hint = f": do you mean `{nearest[0]}`?" if nearest else "."
    raise CompilationError(
        f'dbt could not find an incremental strategy macro with the name "{macro}" in {project}{hint} '
        f"`incremental_strategy` is one of {', '.join(known)}, or the project has such a macro"
    )
