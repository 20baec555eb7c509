"""The command that alters tables at random: one round."""

import random

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from tools.faults.alterations import Alterations


@pytest.mark.server
def test_a_round(server18: EmbeddedServer) -> None:
    """Captures run, are killed and are away while columns come, go and change their names."""
    found = Alterations(server18, "altered_round", random.Random(1), phases=1)
    assert found.run() == [] and "rows" in found.summary
    with server18.connect() as admin:
        admin.execute("DROP DATABASE altered_round")
