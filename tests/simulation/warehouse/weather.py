"""The faults of a simulated storage and of the processes that use it, by their probability."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from tests.faulty_store import FaultKind


@dataclass(frozen=True)
class Weather:
    """The probability of each fault, per operation."""

    faults: tuple[tuple[FaultKind, str, str, float], ...] = ()
    crash: float = 0.0
    lost: float = 0.0
    clock: float = 0.0
    outage: float = 0.0


FAIR = Weather()
ROUGH = Weather(
    faults=(
        (FaultKind.FAIL_BEFORE, "*", "*", 0.01),
        (FaultKind.FAIL_AFTER, "put*", "*", 0.03),
        (FaultKind.FAIL_AFTER, "swap*", "*", 0.03),
        (FaultKind.TWICE, "*", "*", 0.02),
        (FaultKind.DELAY, "*", "*", 0.01),
    ),
    crash=0.004,
    lost=0.02,
    clock=0.01,
    outage=0.01,
)
FOUL = Weather(
    faults=(
        (FaultKind.FAIL_BEFORE, "*", "*", 0.03),
        (FaultKind.FAIL_AFTER, "put*", "*.json", 0.2),
        (FaultKind.FAIL_AFTER, "swap*", "*", 0.2),
        (FaultKind.TORN, "read", f"*{LOG_FOLDER}/*", 0.02),
        (FaultKind.LATE, "list_from", f"*{LOG_FOLDER}*", 0.05),
    ),
    crash=0.01,
    lost=0.1,
    clock=0.03,
    outage=0.05,
)
