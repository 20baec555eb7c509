"""Columns of values from a batch into Arrow, by compiled code, for text and for binary format.

What has a fixed width in Arrow, and texts, the walk over rows reads on its way (``row_plan``); other types have kernels
that read a column in one pass. What neither takes (infinity, BC, NaN, unusual text) is left to ``column_reader``, value
by value. Families name the kernels of their types (``Family.compiled``), and ``cast_table`` finds them.

| modules | what they hold |
|---|---|
| ``row_plan`` | what the walk over rows is told of each column, and how it reads a value |
| ``number_readers``, ``date_readers`` | how it reads numbers and dates |
| ``planned_casts`` | a column by such a plan |
| ``text_casts``, ``array_casts`` | columns of other types: bytea, uuid, inet, time; arrays |
| ``cast`` | what all casts are given and return |
"""
