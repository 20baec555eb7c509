"""Rows that tables have already, copied into the log beside the stream."""
