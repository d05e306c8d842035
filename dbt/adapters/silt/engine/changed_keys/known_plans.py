"""Recognizes a Spark whose plans have the form that a proof reads: a new Spark may rename or reorder arguments.

A tested version is trusted. On any other version, the plan of a query with every operator that a proof knows is
compared with the plans of the tested versions, which are in `tests/unit/engine/changed_keys/plans`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from dbt.adapters.silt.engine.changed_keys.plan_text import analyzed_text
from dbt.adapters.silt.engine.changed_keys.proof import NotProved

_A: Final = "(select 1 as k, 2 as v) as a"
_B: Final = "(select 1 as k, 3 as d, array(4) as e) as b"

QUERY: Final = f"""
with c as (select k, max(v) as m from {_A} where v > 0 group by k),
    joined as (
        select a.k, b.d from {_A} join {_B} on a.k = b.k and a.v <=> b.d
        union all select a.k, b.d from {_A} left join {_B} on a.k = b.k
        union all select b.k, b.d from {_A} right join {_B} on a.k = b.k
        union all select k, b.d from {_A} full join {_B} using (k)
        union all select a.k, a.v from {_A} left semi join {_B} on a.k = b.k
        union all select a.k, a.v from {_A} left anti join {_B} on a.k = b.k
        union all select a.k, b.d from {_A} cross join {_B} where a.k = b.k
        union all select /*+ broadcast(b) */ a.k, b.d from {_A}, {_B}
    )
select k, m from (select first.k, second.m from c as first join c as second on first.k = second.k)
union all select distinct k, d from joined
union all select k, rank() over (partition by k, d order by d desc, k) as r from joined
union all select k, sum(d) over (partition by k) as s from joined
union all select k, count(*) as n from joined group by rollup (k, d)
union all select k, x from {_B} lateral view explode(e) f as x
union all (select k, v from {_A} except select k, d from {_B})
union all (select k, v from {_A} intersect all select k, d from {_B})
union all (select /*+ repartition(2) */ k, v from {_A})
union all (select /*+ repartition(2, k) */ k, v from {_A})
union all (select /*+ rebalance(k) */ k, v from {_A})
union all (select k, v from {_A} order by v desc, k)
union all (from {_A} |> where v > 1 |> select k, v)
union all select k, v from {_A} where k in (select k from {_B}) and exists (select 1 from {_B} where b.k = a.k)
union all select k, (select max(d) from {_B}) as d from {_A}
"""
"""A query that uses every operator and argument that a proof reads, on rows of its own."""

KNOWN: Final[Mapping[str, str]] = {
    "4.0": "ec7dabb262588a3ab75a77fb756a66051b0408b77e7516c8d934d001a6d206f7",
    "4.1": "f0b02be5019509cc82205d85b2ec164fdc3c33cae111f54cb005f15f9369a54f",
    "4.2": "f0b02be5019509cc82205d85b2ec164fdc3c33cae111f54cb005f15f9369a54f",
    "4.3": "f0b02be5019509cc82205d85b2ec164fdc3c33cae111f54cb005f15f9369a54f",
}
"""The digest of the plan of `QUERY` in each tested version of Spark."""

_RELEASE: Final = re.compile(r"(\d+\.\d+)\.\d+")
_ID: Final = re.compile(r"(#|CTERelation(?:Def|Ref) )(\d+)")


def check(version: str, explain: Callable[[str], str]) -> None:
    """Checks that a version of Spark shows plans in the form that a proof reads.

    Args:
        explain: returns the result of EXPLAIN EXTENDED for a query.

    Raises:
        NotProved: if the version was not tested and its plan differs from each recorded plan.
    """
    found = _RELEASE.fullmatch(version)
    if found is not None and found[1] in KNOWN:
        return
    if digest(explain(QUERY)) not in KNOWN.values():
        first, *_, last = KNOWN
        raise NotProved(f"runs on Spark {version}, which shows plans in another form than Spark {first} to {last}")


def digest(explained: str) -> str:
    """Returns the digest of the resolved plan in the result of EXPLAIN EXTENDED."""
    return hashlib.sha256(form(explained).encode()).hexdigest()


def form(explained: str) -> str:
    """Returns the resolved plan, with its identifiers numbered in the order of their first use."""
    numbers: dict[tuple[str, str], int] = {}
    text = (analyzed_text(explained) or "").rstrip()
    return _ID.sub(lambda found: f"{found[1]}{numbers.setdefault((found[1][0], found[2]), len(numbers))}", text)
