"""Names suggested by a description, for a maintainer to confirm."""

import re

from tools.protocol_docs.cells import Cell

__all__ = ["suggestion"]

_SUFFIX = {"XLogRecPtr": "lsn", "TimestampTz": "time", "Oid": "oid", "TransactionId": "xid", "FullTransactionId": "xid"}
_IDLE = re.compile(
    r"an?|the|of|in|is|are|was|be|been|this|that|its?|for|and|or|with|by|to|on|at|as|same|corresponding|identifies|"
    r"message|value|number|transaction|lsn|xid|oid|id|timestamp|currently|unused|flags|marks|only|length|here|stands"
)


def suggestion(cell: Cell) -> str:
    """Return a name from the first significant word of the description, and from the type."""
    if cell.constant == 0:
        return "flags"
    words = re.findall(r"[a-z]+", cell.description.split(".")[0])
    telling = [word for word in words if not _IDLE.fullmatch(word)][:1]
    if "number of" in cell.description and telling:
        return f"{telling[0].removesuffix('s')}_count"
    suffix = _SUFFIX.get(cell.annotation or "", "")
    return "_".join([*telling, *([suffix] if suffix else [])]) or cell.base.lower()
