"""Tables of a warehouse against their source."""

from pgoutput_construct.spark._verify.expected_rows import chosen_tables, format_of
from pgoutput_construct.spark._verify.table_comparison import Pace
from pgoutput_construct.spark._verify.verdicts import Difference, Record, TableVerdict
from pgoutput_construct.spark._verify.verification import verify

__all__ = ["Difference", "Pace", "Record", "TableVerdict", "chosen_tables", "format_of", "verify"]
