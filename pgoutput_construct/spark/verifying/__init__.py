"""Tables of a warehouse against their source."""

from pgoutput_construct.spark.verifying.kept import chosen_tables, format_of
from pgoutput_construct.spark.verifying.pace import Pace
from pgoutput_construct.spark.verifying.report import Difference, TableVerdict
from pgoutput_construct.spark.verifying.resuming import Record
from pgoutput_construct.spark.verifying.run import verify

__all__ = ["Difference", "Pace", "Record", "TableVerdict", "chosen_tables", "format_of", "verify"]
