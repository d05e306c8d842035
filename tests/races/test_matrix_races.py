"""Each entry of the conflict matrix by real commits: the winners commit after a transaction has written its files."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import checksum_path, commit_path
from tests.races.transactions import FILES_WRITTEN, SETTLED, Race
from tests.unit.engine.kernel.transaction.test_conflicts import BY_DAY, LEVELS, TRANSACTIONS, WINNERS, matrix

FIRST = serialize([CommitInfo(1, "CREATE TABLE"), BY_DAY.protocol, BY_DAY.metadata, *BY_DAY.add_files()])


def prepared() -> Race:
    """The table of the matrix; its data files need no content."""
    race = Race()
    race.store.put(commit_path(0), FIRST)
    race.store.delete(checksum_path(0))
    for name in ("mine", "one"):
        race.store.put(name, b"data")
    return race


@pytest.mark.parametrize(("winners", "transaction", "level", "error"), list(matrix()))
def test_an_overtaken_transaction(winners: str, transaction: str, level: str, error: type[Exception] | None) -> None:
    for changes, reads in TRANSACTIONS[transaction]:
        race = prepared()

        def commit_winners(race: Race = race) -> None:
            for version, actions in enumerate(WINNERS[winners], start=1):
                race.store.put_if_absent(commit_path(version), serialize(actions))

        loser = race.writer(lambda table: table.commit(changes, reads), LEVELS[level])  # noqa: B023
        race.run(loser.until(FILES_WRITTEN), commit_winners, loser.until(SETTLED))
        assert type(loser.error) is (error or type(None)), loser.error
        assert loser.version == (None if error else len(WINNERS[winners]) + 1)
