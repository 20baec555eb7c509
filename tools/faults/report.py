"""What a run came to, in lines that a person reads."""

from pathlib import Path

from tools.faults.attack import RoundReport
from tools.faults.counts import Counts

__all__ = ["line", "progress", "verdict_line"]


def line(report: RoundReport, progress: str) -> str:
    """Describe one round in one line, with how far the run has come; more where something is wrong."""
    verdict = report.verdict
    found = f"lost {verdict.lost}, repeated {verdict.repeated}, rolled back but visible {verdict.visible}"
    if not verdict.good:
        found += f", altered {verdict.altered}, out of order {verdict.misordered}, misindexed {verdict.misindexed}"
    return "\n    ".join([f"[{progress}] {report.name}: {_counts(report.counts)}: {found}", *verdict.problems])


def progress(rounds: int, of: int, seconds: float) -> str:
    """Say how far a run has come, such as ``5 of 22, 3 min, about 11 min to go``."""
    left = seconds / rounds * (of - rounds)
    return f"{rounds} of {of}, {seconds / 60:.0f} min" + (f", about {left / 60:.0f} min to go" if left else "")


def verdict_line(total: Counts, good: bool, seed: int, directory: Path) -> str:
    """Describe the whole run."""
    found = "lost 0, repeated 0, rolled back but visible 0" if good else f"FAILED, seed {seed}, files in {directory}"
    return f"all: {_counts(total)}: {found}"


def _counts(counts: Counts) -> str:
    return (
        f"kills {counts.kills} (during a compaction or prune {counts.kills_beside}), "
        f"immediate stops {counts.stops}, cuts {counts.cuts}, "
        f"silences {counts.stalls} (noticed {counts.noticed}), captures that ended {counts.ended}, "
        f"compactions {counts.compactions} and prunes {counts.prunes} (killed {counts.tidies_killed}); "
        f"transactions {counts.transactions:,}, changes {counts.changes:,}, rolled back {counts.rolled_back:,}, "
        f"segments {counts.segments:,}, messages {counts.entries:,}"
    )
