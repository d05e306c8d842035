"""Texts that begin like SQL: fragments of statements in any order."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = """
select from where with as insert into overwrite table values merge using on when matched not then update set delete
create or replace view temporary schema if exists drop alter add column columns rename to comment on is null partition
partitioned by tblproperties options location describe history detail show tables in like use reset explain union all
except intersect join left semi lateral view pivot group order limit version timestamp of for tablesample exists case
end and between distinct recursive name source target evolution check constraint primary key identifier truncate cache
a b t s.t db.s.t `a b` `c``d` delta.`/x/y` t@v1 `t@v2` 'text' 'it''s' "double" 1 1.5 2L date'2020-01-01' f( ) ( ( )
, , . ; = <=> < >= != + - * / || :: |> => @ : ? [ ] -- /* */ /*+ {{ }} $ \\ ' ` \"
""".split()


def soups(most: int = 25) -> st.SearchStrategy[str]:
    """Draws fragments with spaces, line breaks or nothing between them, and occasionally an arbitrary character."""
    fragment = st.one_of(st.sampled_from(_WORDS), st.sampled_from(_WORDS), st.text(max_size=3))
    blank = st.sampled_from((" ", " ", " ", "\n", "", "\t"))
    return st.lists(st.tuples(fragment, blank), max_size=most).map(lambda parts: "".join(map("".join, parts)))


def openings() -> st.SearchStrategy[str]:
    """Draws a soup after the beginning of a statement."""
    return st.tuples(st.sampled_from(_OPENINGS), soups()).map("".join)


_OPENINGS = (
    "create table t ",
    "create or replace table s.t (",
    "create view v ",
    "insert into t ",
    "insert into t replace where ",
    "merge into t using s on ",
    "merge into t using s on t.a = s.a when matched then ",
    "update t set ",
    "delete from t where ",
    "alter table t ",
    "with x as (select 1) ",
    "select * from ",
    "select ",
    "describe ",
    "show ",
)
