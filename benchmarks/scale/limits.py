"""How many commits a second one table takes, in virtual time (`virtual`)."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scale.virtual import Load, Result, simulate

WRITERS = (1, 2, 4, 8, 16, 32, 64)
LATENCIES = (0.05, 1.0)
_REQUESTS = 800
_MERGES = 20


def appends(writers: tuple[int, ...] = WRITERS) -> Iterator[Result]:
    """Appends, one after the other, for as long as 800 requests take."""
    for latency in LATENCIES:
        for count in writers:
            yield simulate(Load(count, latency, _REQUESTS * latency))


def merges(writers: tuple[int, ...] = WRITERS[:5]) -> Iterator[Result]:
    """Merges that have read the whole table, of 2 and of 20 seconds of work."""
    for work in (2.0, 20.0):
        for count in writers:
            yield simulate(Load(count, 0.05, _MERGES * work, is_merge=True, work=work))
