"""Tables of a warehouse against their source."""

from pgoutput_construct.spark._verify.expected_rows import chosen_tables, format_of
from pgoutput_construct.spark._verify.table_comparison import VerifyOptions
from pgoutput_construct.spark._verify.verdicts import Difference, TableVerdict, VerificationRecord
from pgoutput_construct.spark._verify.verification import verify

__all__ = ["Difference", "TableVerdict", "VerificationRecord", "VerifyOptions", "chosen_tables", "format_of", "verify"]
