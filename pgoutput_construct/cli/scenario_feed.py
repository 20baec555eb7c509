"""``scenario:SEED`` as what a publisher serves, and what it means as JSON."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import require

if TYPE_CHECKING:
    from pgoutput_construct.publisher import Feed

__all__ = ["is_scenario", "scenario_feed"]

_FORM: Final = re.compile(r"scenario:(?P<seed>\d{1,18})(?::(?P<count>\d{1,6}))?")
_COUNT: Final = 20
"""How many scenarios a stream has that says nothing else."""


def is_scenario(source: str) -> bool:
    """Tell the name of invented scenarios from that of a file."""
    return source.startswith("scenario:")


def scenario_feed(source: str, server_version: int, told: Path | None) -> "Feed":
    """Invent scenarios; raises PgoutputError for a name that is none.

    Args:
        source: ``scenario:SEED``, or ``scenario:SEED:COUNT``.
        server_version: The major version of the PostgreSQL that they stand for.
        told: The file that says what they mean; None: nothing does.
    """
    found = _FORM.fullmatch(source)
    if found is None or found["count"] == "0":
        raise PgoutputError(f"{source}: write scenario:SEED or scenario:SEED:COUNT, two numbers, such as scenario:1:20")
    require("testing")
    from pgoutput_construct.testing.inventions import ScenarioFeed, invented, meaning

    scenarios = invented(int(found["count"] or _COUNT), int(found["seed"]))
    if told is not None:
        told.write_text(json.dumps(meaning(scenarios), indent=1) + "\n", "utf-8")
    return ScenarioFeed(scenarios, server_version * 10000)
