"""Measures the size of a statement with its views and functions written out, and limits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError

DEEPEST: Final = 100
"""Limit of the nesting depth of views and functions; Spark has the same limit for its own views."""
MOST_TEXTS: Final = 10_000
MOST_CHARACTERS: Final = 64 << 20


@dataclass(frozen=True)
class Extent:
    """The size of a text with the texts of its views and functions, each counted as often as it is named.

    Attributes:
        depth: nesting depth of the texts, including this text.
        texts: number of texts, including this text.
        characters: number of characters of all texts together.
    """

    depth: int
    texts: int
    characters: int

    @classmethod
    def of(cls, sql: str) -> Extent:
        """Returns the extent of a text alone."""
        return cls(1, 1, len(sql))

    def around(self, inner: Iterable[Extent]) -> Extent:
        """Returns the extent of the text with inner texts."""
        others = list(inner)
        return Extent(
            self.depth + max((each.depth for each in others), default=0),
            self.texts + sum(each.texts for each in others),
            self.characters + sum(each.characters for each in others),
        )

    def check(self, inside: tuple[str, ...]) -> None:
        """Checks that the extent is within the limits.

        Args:
            inside: the views and functions that contain the text, the outermost first; the last is the text's owner.

        Raises:
            UnsupportedStatementError: if a limit is exceeded; the message names the owner of the text, or the outermost
                of the views and functions that are nested too deep.
        """
        if len(inside) + self.depth - 1 > DEEPEST:
            raise UnsupportedStatementError(
                f"below it, views and functions are nested more than {DEEPEST} deep",
                table=inside[0] if inside else None,
                remedy="Store the rows of a view in between as a table, or write its query into the view above",
            )
        if self.texts > MOST_TEXTS or (self.texts > 1 and self.characters > MOST_CHARACTERS):
            raise UnsupportedStatementError(
                f"with its views and functions expanded it has {self.texts:,} parts of {self.characters:,} "
                f"characters; at most {MOST_TEXTS:,} parts of {MOST_CHARACTERS:,} characters are sent to Spark",
                table=inside[-1] if inside else None,
                remedy="Store the rows of a view that is named several times as a table",
            )
