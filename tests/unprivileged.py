"""Runs a program that file modes apply to: root may otherwise read and write every file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Linux: prctl(PR_CAPBSET_DROP), CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH. Other users have neither capability, and may
# not make this call.
_GIVES_UP_RIGHTS = """
import ctypes, os, sys
if os.geteuid() == 0:
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""


def run_unprivileged(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a separate process, with the folder as its working directory."""
    return subprocess.run(
        [sys.executable, "-c", _GIVES_UP_RIGHTS, code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
