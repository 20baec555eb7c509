"""Run in a copy of the project: both engines and the kernels agree with the golden vectors.

python vectors.py
"""

import json
from pathlib import Path

import pgoutput_construct as pgo
from pgoutput_construct.columnar import index_batch
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import ParseOptions


def check() -> None:
    """Parse gives what they say, and refuses where they say; the kernels accept the same."""
    _, *lines = Path("spec/vectors.jsonl").read_text("utf-8").splitlines()
    for vector in map(json.loads, lines):
        given, data = {name: vector[name] for name in ParseOptions._fields}, bytes.fromhex(vector["hex"])
        states = {name: [given[name]] for name in STATE_PARAMETERS}
        valid = index_batch([data], **{**given, **states}).valid[0]
        try:
            message = pgo.parse(data, **given)
        except pgo.DecodeError as error:
            assert vector["refuse"]["offset"] == error.offset, (vector, error)
            assert not valid, vector
        else:
            assert jsonable.to_json(message) == {"message": vector["message"], **vector["fields"]}, vector
            assert pgo.build(message, **given) == data and valid


if __name__ == "__main__":
    check()
