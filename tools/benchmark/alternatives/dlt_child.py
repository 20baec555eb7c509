"""Runs a pipeline of dlt in an environment of its own: the changes of a slot into files of Parquet."""

import importlib
import sys


def main(sources: str, dsn: str, slot: str, publication: str, folder: str, batch: str) -> None:
    """Run it once."""
    import dlt

    sys.path.insert(0, sources)
    resource = importlib.import_module("pg_replication").replication_resource
    files = dlt.destinations.filesystem(f"{folder}/files")
    pipeline = dlt.pipeline("changes", f"{folder}/state", destination=files, dataset_name="lake")
    changes = resource(slot, publication, credentials=dsn, target_batch_size=int(batch))
    pipeline.run(changes, loader_file_format="parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
