"""The manifests of a log that grows: footers are merged as they come, and small manifests into large ones."""

from typing import Final

import numpy as np

from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.indexes import index_of, indexes_of
from pgoutput_construct.changelog.listed import Listing
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.manifest import Manifest, ManifestName, manifest_names, read_manifest
from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["SMALL", "ManifestKeeper", "rewrite_manifests"]

SMALL: Final = 128
"""Segments in a small manifest, and small ones in a large one: the most footers, and small ones, that are read."""
_LARGE: Final = SMALL * SMALL


class ManifestKeeper:
    """Writes manifests for the one who writes segments."""

    def __init__(self, store: LogStore, listing: Listing) -> None:
        """Go on with a log: what has no manifest yet at its end gets one now, but for the last few segments."""
        self._store = store
        self._pending: list[tuple[Segment, SegmentIndex]] = []
        self._small = [manifest.name for manifest in listing.manifests if len(manifest) < _LARGE]
        for segment in listing[listing.known_until :]:
            self.add(segment, index_of(segment))

    def add(self, segment: Segment, index: SegmentIndex) -> None:
        """Take in the next segment, which is durable; at times this writes a manifest."""
        self._pending.append((segment, index))
        if len(self._pending) < SMALL:
            return
        segments, indexes = zip(*self._pending, strict=True)
        self._small.append(Manifest.of(segments, SegmentIndex.concat(indexes)).write(self._store))
        self._pending = []
        if len(self._small) >= SMALL:
            self._merge()

    def _merge(self) -> None:
        small, self._small = self._small, []
        try:
            Manifest.concat(read_manifest(self._store, name.name) for name in small).write(self._store)
        except ChangeLogError:  # a compaction has replaced them, or one is damaged: a cache may lack what it wants
            return
        _remove(self._store, small)


def rewrite_manifests(store: LogStore, last_seq: int) -> None:
    """Write the manifests of a log anew up to a seq, after segments were replaced or removed."""
    listing = list_log(store)
    segments = listing[: int(np.searchsorted(listing.last_seqs, last_seq, "right"))]
    parts = (segments[first : first + _LARGE] for first in range(0, len(segments), _LARGE))
    written = [Manifest.of(part, indexes_of(part)).write(store) for part in parts]
    old = manifest_names(store.files())
    _remove(store, [name for name in old if name.last_seq <= last_seq and name not in written])


def _remove(store: LogStore, names: list[ManifestName]) -> None:
    for name in names:
        store.delete(name.name)
