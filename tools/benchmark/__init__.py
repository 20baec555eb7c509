"""Benchmarks: every engine on recorded messages, against other parsers, against copying, and against Arrow alone."""
