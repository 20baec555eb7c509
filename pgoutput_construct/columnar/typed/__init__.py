"""One column's values from a batch into Arrow: kernels by type, for text and for binary format.

Each reads a column in one pass from the batch's bytes into Arrow's buffers. What a kernel does not take (infinity, BC,
NaN, unusual text) it leaves to ``columnar.values``, value by value.
"""
