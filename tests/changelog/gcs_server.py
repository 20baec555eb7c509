"""python -m tests.changelog.gcs_server: an emulator of Google Cloud Storage, with a bucket; its line is its port.

A process of its own: it would wait for the interpreter that pyarrow's client holds while it waits for an answer.
"""

import socket
import sys

from gcp_storage_emulator.server import create_server

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop()
