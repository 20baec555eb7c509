"""Tables of a warehouse against the server that their changes come from, while both are written to.

In come a warehouse, its log and a server (``table_comparison.SnapshotSource``, which ``postgres.checksums`` implements:
this room knows no sockets); out goes a verdict for each table.

``verification`` takes a snapshot of the server, waits until the log has everything that it sees, and compares table by
table; ``expected_rows`` are the rows of the warehouse with those changes that the snapshot sees and the warehouse does
not have yet; ``table_comparison`` compares parts of a table by checksums (``part_checksums``), and row by row those
that differ; ``verdicts`` is what was found, and the record that lets an interrupted verification resume. Start reading
at ``verification``.

Invariants: nothing is locked; a difference is one under a single snapshot, never a change that is on its way.
"""

from pgoutput_construct.spark._verify.expected_rows import chosen_tables, format_of
from pgoutput_construct.spark._verify.table_comparison import VerifyOptions
from pgoutput_construct.spark._verify.verdicts import Difference, TableVerdict, VerificationRecord
from pgoutput_construct.spark._verify.verification import verify

__all__ = ["Difference", "TableVerdict", "VerificationRecord", "VerifyOptions", "chosen_tables", "format_of", "verify"]
