"""How much text a statement becomes when its views and functions are written out, and how much of it is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError

DEEPEST: Final = 100
"""How many views and functions may be in one another; Spark allows its own views as many."""
MOST_TEXTS: Final = 10_000
MOST_CHARACTERS: Final = 64 << 20


@dataclass(frozen=True)
class Extent:
    """The size of a text with those of its views and functions, each as often as it is named.

    Attributes:
        depth: how many texts are in one another, itself included.
        texts: how many texts there are, itself included.
        characters: of all texts together.
    """

    depth: int
    texts: int
    characters: int

    @classmethod
    def of(cls, sql: str) -> Extent:
        """That of a text alone."""
        return cls(1, 1, len(sql))

    def around(self, inner: Iterable[Extent]) -> Extent:
        """That of the text with others in it."""
        others = list(inner)
        return Extent(
            self.depth + max((each.depth for each in others), default=0),
            self.texts + sum(each.texts for each in others),
            self.characters + sum(each.characters for each in others),
        )

    def check(self, inside: tuple[str, ...]) -> None:
        """Makes sure that a statement may hold so much.

        Args:
            inside: the views and functions that the text is in, the outermost first; it is the text of the last.

        Raises:
            UnsupportedStatementError: it is too much; the message names the view or function whose text it is, or the
                outermost of those that are nested too deep.
        """
        if len(inside) + self.depth - 1 > DEEPEST:
            raise UnsupportedStatementError(
                f"below it, views and functions are nested more than {DEEPEST} deep",
                table=inside[0] if inside else None,
                remedy="Store the rows of a view in between as a table, or write its query into the view above",
            )
        if self.texts > MOST_TEXTS or (self.texts > 1 and self.characters > MOST_CHARACTERS):
            raise UnsupportedStatementError(
                f"with its views and functions written out it has {self.texts:,} texts of {self.characters:,} "
                f"characters; at most {MOST_TEXTS:,} texts of {MOST_CHARACTERS:,} characters are given to Spark",
                table=inside[-1] if inside else None,
                remedy="Store the rows of a view that is named several times as a table",
            )
