"""Masks: what replaces a column's values before they are stored anywhere.

A mask works on PostgreSQL's text of a value, so a masked column is a string, whatever its type is at the source. NULL
stays NULL, and a TOASTed value that was not sent stays unsent.

``sha256`` is the hexadecimal digest of a salt followed by the text, in UTF-8. Equal values have equal digests and
different ones different digests, so rows are told apart by the masked values of their key as by the values themselves
(``_state/equality``: two values are the same where PostgreSQL writes the same text of both). ``null`` and ``text`` make
different values equal: they are for columns that are not in the key.

The salt is secret: with it, whoever guesses a value can check the guess. It is in the memory of driver and executors
alone. ``repr`` does not show it, errors do not repeat it, and notes have a fingerprint by which another salt is found
out: a scrypt digest with a random nonce, so that guessing a weak salt from it is expensive.
"""

import os
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import scrypt, sha256
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.errors import PgoutputError

__all__ = ["Mask", "MaskKind", "fingerprint", "masked_batch", "new_nonce"]

_CALL: Final = re.compile(r"(sha256|text)\((.*)\)", re.DOTALL)
_FORM: Final = "write sha256($NAME) or sha256(@FILE) for a salt in a variable or a file, sha256(SALT), null, text(...)"
_NONCE: Final = 16
"""Bytes of the nonce of a fingerprint."""
_COST: Final = {"n": 1 << 14, "r": 8, "p": 1}
"""The cost of a fingerprint: 16 MiB, and about a tenth of a second."""
_BEFORE: Final = "_before."
"""The prefix of the old row's columns in ``_untyped``."""


class MaskKind(StrEnum):
    """What a mask makes of a value that is not NULL."""

    SHA256 = "sha256"
    """The digest of a salt and the text of the value."""
    NULL = "null"
    TEXT = "text"
    """A constant."""


@dataclass(frozen=True)
class Mask:
    """A mask of one column."""

    kind: MaskKind
    constant: str = ""
    """The constant of ``text``."""
    salt: bytes | None = field(default=None, repr=False)
    """The salt of ``sha256``; None where it is not known, as in a note."""
    origin: str = ""
    """Where the salt was read: ``$NAME`` or ``@FILE``; empty if it was given itself."""

    @classmethod
    def parse(cls, text: str) -> "Mask":
        """Read a mask as a caller gives it; raise PgoutputError, which does not repeat what may be a salt."""
        if text == MaskKind.NULL:
            return cls(MaskKind.NULL)
        call = _CALL.fullmatch(text)
        if call is None:
            raise PgoutputError(f"it is no mask: {_FORM}")  # the text may be a salt
        kind, argument = MaskKind(call[1]), call[2]
        return cls(kind, argument) if kind is MaskKind.TEXT else cls.salted(argument)

    @classmethod
    def salted(cls, argument: str) -> "Mask":
        """Return a mask by SHA-256, given its salt or where that is read; raise PgoutputError for none."""
        if argument.startswith("$"):
            value = os.environ.get(argument[1:])
            if value is None:
                raise PgoutputError(
                    f"the environment has no variable {argument[1:]}, which must have the salt of a mask"
                )
            salt = os.fsencode(value)
        elif argument.startswith("@"):
            try:
                salt = Path(argument[1:]).read_bytes()
            except OSError as error:
                raise PgoutputError(f"{argument[1:]}: the salt of a mask cannot be read: {error.strerror}") from None
            salt = salt.removesuffix(b"\n").removesuffix(b"\r")
        else:
            salt = argument.encode("utf-8", "surrogateescape")
        if not salt:
            raise PgoutputError(f"the salt of a mask is empty, so that everyone could check guesses of values: {_FORM}")
        return cls(MaskKind.SHA256, salt=salt, origin=argument if argument[0] in "$@" else "")

    @property
    def is_known(self) -> bool:
        """Whether values can be masked: a salt is known where one is needed."""
        return self.kind is not MaskKind.SHA256 or self.salt is not None

    @property
    def keeps_keys(self) -> bool:
        """Whether different values stay different."""
        return self.kind is MaskKind.SHA256

    def text(self, value: str) -> str | None:
        """Return what replaces a value."""
        (found,) = self.values(pa.array([value], pa.string())).to_pylist()
        return None if found is None else str(found)

    def values(self, values: pa.Array) -> pa.Array:
        """Return what replaces texts; null for null."""
        if self.kind is MaskKind.NULL:
            return pa.nulls(len(values), pa.string())
        if self.kind is MaskKind.TEXT:
            return pc.if_else(values.is_valid(), self.constant, pa.scalar(None, pa.string()))
        assert self.salt is not None, "the caller has checked that the salt is known"
        coded, salted = values.dictionary_encode(), sha256(self.salt)
        digests = list[str]()
        for text in coded.dictionary.cast(pa.binary()).to_pylist():
            each = salted.copy()
            each.update(text)
            digests.append(each.hexdigest())
        return pa.array(digests, pa.string()).take(coded.indices)


def masked_batch(batch: pa.RecordBatch, masks: Mapping[str, Mask]) -> pa.RecordBatch:
    """Return changes with masked values in their new and old rows.

    What the type of a column cannot hold, and ``_untyped`` has for it (text that is not UTF-8, and types of which only
    the server writes the text), is masked in the column itself.

    Args:
        batch: The changes, of ``changes_schema``; masked columns are strings.
        masks: The masks, by the names of columns in the batch.
    """
    if not masks:
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    untyped = columns["_untyped"]
    for name, mask in masks.items():
        columns[name] = mask.values(_with_texts(columns[name], untyped, name))
    if (before := columns.get("_before")) is not None:
        fields = dict(zip((each.name for each in before.type), before.flatten(), strict=True))
        for name, mask in masks.items():
            fields[name] = mask.values(_with_texts(fields[name], untyped, _BEFORE + name))
        columns["_before"] = pa.StructArray.from_arrays(
            list(fields.values()), fields=list(before.type), mask=before.is_null()
        )
    columns["_untyped"] = _without(untyped, {*masks, *(_BEFORE + name for name in masks)})
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def _with_texts(values: pa.Array, untyped: pa.Array, name: str) -> pa.Array:
    return pc.coalesce(values, pc.map_lookup(untyped, name, "first")) if len(untyped.keys) else values


def _without(untyped: pa.Array, names: Collection[str]) -> pa.Array:
    """Return maps such as ``_untyped`` without some keys; null for none."""
    if not len(untyped.keys):
        return untyped
    bounds = untyped.offsets.to_numpy()
    first, end = int(bounds[0]), int(bounds[-1])
    keys, items = untyped.keys[first:end], untyped.items[first:end]
    rows = np.repeat(np.arange(len(untyped)), np.diff(bounds))
    stays = ~pc.is_in(keys, pa.array(sorted(names), pa.string())).to_numpy(zero_copy_only=False)
    stays &= untyped.is_valid().to_numpy(zero_copy_only=False)[rows]
    counts = np.bincount(rows[stays], minlength=len(untyped))
    starts = np.append(0, np.cumsum(counts)).astype(np.int32)
    # A null among the offsets is a null among the maps.
    offsets = pa.array(starts, mask=np.append(counts == 0, False))
    chosen = pa.array(stays)
    return pa.MapArray.from_arrays(offsets, keys.filter(chosen), items.filter(chosen))


@lru_cache(maxsize=64)
def fingerprint(salt: bytes, nonce: str) -> str:
    """Return the fingerprint of a salt, given a nonce (hexadecimal digits): ``nonce:digest``."""
    return f"{nonce}:{scrypt(salt, salt=bytes.fromhex(nonce), dklen=16, **_COST).hex()}"


def new_nonce() -> str:
    """Return a nonce for a fingerprint."""
    return secrets.token_hex(_NONCE)
