"""The number of examples that a rule is tested with: a quarter, or all if SILT_EXAMPLES is `all`, as in
`make test-long`.
"""

from __future__ import annotations

import os

_SHARE = 1 if os.environ.get("SILT_EXAMPLES") == "all" else 4
_FEWEST = 5
DEFAULT = 100
"""The number for a rule that states no other; Hypothesis has the same default."""


def examples(count: int) -> int:
    """Returns how many of a rule's `count` examples this run draws."""
    return max(min(count, _FEWEST), count // _SHARE)
