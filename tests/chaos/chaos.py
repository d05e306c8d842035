"""Runs stories and compares them with an undisturbed story."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.chaos.figures import Figures
from tests.chaos.plan import CLOUD_KILLS_PER_ROUND, KILLS_PER_ROUND, ROUNDS, RoundPlan, plan
from tests.chaos.story import Round, Told, Undisturbed
from tests.chaos.workplace import Workplace
from tests.cloud.servers import ObjectServer

_printing = threading.Lock()


class Chaos:
    """Runs stories and compares them with an undisturbed story.

    Args:
        folder: of the warehouses; the warehouses of successful stories are deleted.
        remote: the Spark Connect server that all runs share; it continues the statements of a killed run. By
            default, each run has its own Spark, which is killed with it.
        keep: the file to which the figures of each finished round are added.
        cloud: the object store of the warehouses; by default, they are in the folder.
        variables: additional environment variables of the killed runs, not of the undisturbed runs.
        publish: when the builds become visible: the profile's `publish`.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        remote: str | None = None,
        keep: Path | None = None,
        cloud: ObjectServer | None = None,
        variables: Mapping[str, str] | None = None,
        publish: str = "at_once",
    ) -> None:
        self.folder = folder
        self._seed = seed
        self._remote = remote
        self._keep = keep
        self._cloud = cloud
        self._variables = dict(variables or {})
        self._publish = publish
        undisturbed = Workplace.make(folder / "undisturbed", remote, cloud, publish)
        self.undisturbed = Undisturbed(undisturbed, lambda line: _say("undisturbed", line))

    @property
    def per_round(self) -> int:
        return KILLS_PER_ROUND if self._cloud is None else CLOUD_KILLS_PER_ROUND

    def story(self, story: int, kills: int) -> list[Told]:
        """Runs the first rounds of a story, until that number of kills or a failed round."""
        folder, told = self.folder / f"story-{story}", []
        place = replace(Workplace.make(folder, self._remote, self._cloud, self._publish), variables=self._variables)
        for each in self._plans(story, kills):
            _say(story, f"round {each.round}, continued by {each.way.value}; first: {each.first.value}")
            told.append(Round(place, each, lambda line: _say(story, line)).live(self.undisturbed.round(each.round)))
            self._add_to_figures(told[-1])
            if not told[-1].is_good:
                self._say_what_is_wrong(told[-1], folder)
                return told
        place.remove()
        return told

    def _plans(self, story: int, kills: int) -> Iterator[RoundPlan]:
        per_round = self.per_round
        for round_, first in enumerate(range(0, kills, per_round), 1):
            lives = self.undisturbed.round(round_).lives
            yield plan(self._seed, story, round_, lives, min(per_round, kills - first), per_round)

    def _add_to_figures(self, told: Told) -> None:
        if self._keep is not None:
            with _printing:
                Figures.of([told]).keep(self._keep)

    def _say_what_is_wrong(self, told: Told, folder: Path) -> None:
        for line in (*told.faults, *(told.difference.notes if told.difference else ())):
            _say(told.plan.story, f"WRONG: {line}")
        server = " SERVER=yes" if self._remote else f" CLOUD={self._cloud.name}" if self._cloud else ""
        publish = "" if self._publish == "at_once" else f" PUBLISH={self._publish}"
        again = f"make chaos SEED={self._seed} KILL={told.plan.first_kill}{server}{publish}"
        _say(told.plan.story, f"kept in {folder}; again with: {again}")


def stories(first: int, kills: int, per_round: int = KILLS_PER_ROUND) -> dict[int, int]:
    """Returns the stories that contain `kills` kills from number `first` on, each with its number of kills to run."""
    per_story = ROUNDS * per_round
    begin = first // per_story
    end = first + kills
    wanted = {story: min(per_story, end - story * per_story) for story in range(begin, begin + kills)}
    return {story: number for story, number in wanted.items() if number > 0}


def _say(story: int | str, line: str) -> None:
    with _printing:
        print(f"{story}: {line}", flush=True)
