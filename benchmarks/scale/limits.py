"""The number of commits per second to one table, in virtual time (`virtual`)."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scale.virtual import Load, Result, simulate

WRITERS = (1, 2, 4, 8, 16, 32, 64)
LATENCIES = (0.05, 1.0)
_REQUESTS = 800
_MERGES = 20


def appends(writers: tuple[int, ...] = WRITERS) -> Iterator[Result]:
    """Successive appends for the duration of 800 requests."""
    for latency in LATENCIES:
        for count in writers:
            yield simulate(Load(count, latency, _REQUESTS * latency))


def merges(writers: tuple[int, ...] = WRITERS[:5]) -> Iterator[Result]:
    """Merges that read the whole table, with 2 and with 20 seconds of work."""
    for work in (2.0, 20.0):
        for count in writers:
            yield simulate(Load(count, 0.05, _MERGES * work, is_merge=True, work=work))
