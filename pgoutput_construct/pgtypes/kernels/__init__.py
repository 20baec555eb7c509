"""One column's values from a batch into Arrow, by type, for text and for binary format.

What has a fixed width in Arrow, and texts, the walk over rows reads on its way (walked.py); other types have kernels
that read a column in one pass. What neither takes (infinity, BC, NaN, unusual text) is left to ``arrow_values``,
value by value.
"""
