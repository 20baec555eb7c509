"""The faults requested for a run, and the counts of what happened."""

from dataclasses import dataclass, fields

__all__ = ["Counts", "Faults"]


@dataclass(frozen=True)
class Faults:
    """How often each fault is injected in a round, and the minimum duration in seconds."""

    kills: int = 0
    stops: int = 0
    cuts: int = 0
    stalls: int = 0
    tidies: int = 0
    """Compactions and prunes."""
    rollbacks: int = 0
    """Kills of the capture and its server after a streamed transaction was rolled back."""
    seconds: float = 0.0

    def share(self, part: int, parts: int) -> "Faults":
        """Return the faults of round ``part`` if these are spread over ``parts`` rounds."""
        names = [name.name for name in fields(self) if name.name != "seconds"]
        shares = {
            name: (part + 1) * getattr(self, name) // parts - part * getattr(self, name) // parts for name in names
        }
        return Faults(**shares, seconds=self.seconds)

    def events(self) -> list[str]:
        """Return the name of each fault."""
        names = {"kill": self.kills, "stop": self.stops, "cut": self.cuts, "stall": self.stalls, "tidy": self.tidies}
        names["rollback"] = self.rollbacks
        return [name for name, count in names.items() for _ in range(count)]


@dataclass
class Counts:
    """What happened in a round, or in all rounds."""

    kills: int = 0
    kills_beside: int = 0
    """Kills of captures during a compaction or prune."""
    rollbacks: int = 0
    """Kills where the log ended with a streamed transaction that was rolled back."""
    stops: int = 0
    cuts: int = 0
    stalls: int = 0
    noticed: int = 0
    """Stalls that the capture noticed by itself."""
    compactions: int = 0
    prunes: int = 0
    tidies_killed: int = 0
    """Compactions and prunes that were killed."""
    ended: int = 0
    """Captures that ended by themselves and were restarted: must be 0."""
    undecodable: int = 0
    """Rounds whose slot the server itself could not decode to the end: what it decoded was compared."""
    transactions: int = 0
    changes: int = 0
    rolled_back: int = 0
    """Transactions and savepoints that were rolled back."""
    segments: int = 0
    entries: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})
