"""Run in a copy of the project that has all changes: print the fields of its messages and frames, as JSON."""

import json

from grown import FRAMES_SENT, OPTIONS, STREAM

from pgoutput_construct.wire.trace import Trace, trace, trace_frame


def fields(found: Trace) -> list[object]:
    """Return the name of a message, its bytes, and the path and the bytes of each field."""
    assert found.fault is None
    spans = [[span.path, found.data[span.start : span.end].hex()] for span in found.spans]
    return [found.name, found.data.hex(), spans]


if __name__ == "__main__":
    frames = [fields(trace_frame(bytes.fromhex(digits))) for _, digits in FRAMES_SENT]
    print(json.dumps([frames, [fields(trace(sent.payload, **OPTIONS, **sent.states)) for sent in STREAM]]))
