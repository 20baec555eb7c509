"""Run in a copy of the project that has the change ``drawn``: messages that stand by themselves.

python drawn.py
"""

from typing import Any, Final

from hypothesis import HealthCheck, Phase, find, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import index_batch

SEQUENCE: Final = b"q" + (5).to_bytes(8, "big")
GROWN: Final[Any] = pgo
ON: Final[dict[str, Any]] = {"proto_version": 5, "sequences": True}


def check_switch() -> None:
    """What a switch brings is refused while the switch is off, with the words to say."""
    assert pgo.Session(**ON).parse(SEQUENCE) == GROWN.Sequence(5) == pgo.parse(SEQUENCE, **ON)
    try:
        pgo.parse(SEQUENCE, proto_version=5)
    except pgo.DecodeError as error:
        assert "pass sequences=True" in str(error), error
    else:
        raise AssertionError("parsed without the option")
    assert index_batch([SEQUENCE], **ON).valid.tolist() == [True]
    assert index_batch([SEQUENCE], proto_version=5).valid.tolist() == [False]


def check_streams() -> None:
    """Streams have the new messages, each where and when it comes."""
    quick = settings(
        max_examples=300,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # any example does: to find the smallest took two thirds of the time
    )
    for name in ("Sequence", "Statement"):
        cls = getattr(pgo, name)

        def has(sent: Any, cls: type = cls) -> bool:
            return any(isinstance(each.message, cls) for each in sent)

        found: Any = find(testing.streams(streaming="on", **ON), has, settings=quick)
        session = pgo.Session(streaming="on", **ON)
        assert all(session.parse(sent.payload) == sent.message for sent in found)


if __name__ == "__main__":
    check_switch()
    check_streams()
