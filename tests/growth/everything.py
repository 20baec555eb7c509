"""Run in a copy of the project that has all changes: messages, streams, tables, logs and Spark follow.

python everything.py FOLDER_OF_RECORDINGS CHECK...    prints what went wrong in which check, as JSON
"""

import io
import json
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

import grown_logs
import grown_messages
import grown_rows

import pgoutput_construct as pgo

CHECKS = {**vars(grown_messages), **vars(grown_rows), **vars(grown_logs)}
"""What can be asked for, by its name."""

if __name__ == "__main__":
    failures = {}
    for name in sys.argv[2:]:
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                CHECKS[name]()
        except Exception:
            failures[name] = traceback.format_exc()
    assert Path(pgo.__file__).is_relative_to(Path.cwd())
    print(json.dumps(failures))
