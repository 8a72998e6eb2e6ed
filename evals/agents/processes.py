"""No process outlives its trial: those left behind are found by a mark in their environment and killed."""

from __future__ import annotations

import psutil

MARK = "TWOGATE_TRIAL"


def kill_marked(value: str) -> int:
    """Kill every process whose environment has ``TWOGATE_TRIAL=value``; how many there were.

    A child that was adopted by init, because its parent was killed or it started a session of its own, is found too.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == value:
                process.kill()
                found.append(process)
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or another user's
    return len(found)
