"""Compiled decoders of columns: values of a batch to Arrow arrays, for text and for binary format.

Values with a fixed width in Arrow, and texts, are decoded by the walk over rows (``row_plan``); other types have
kernels that decode a column in one pass. Values that neither decodes (infinity, BC, NaN, unusual text) are left to
``column_reader``, one by one. Families name the kernels of their types (``Family.compiled``); ``cast_table`` finds
them, and casts arrays by them.

Kernels read the bytes without bounds checks; ``compiled.jit`` has the rules. Here, the walk or a cast has checked that
each value (offset and length) lies within the batch. A reader may read a whole word that overlaps the value, but only
after a check that the word lies within the batch (``end >= 8``, or an offset of at most ``len(data) - 8``).

| modules | what they hold |
|---|---|
| ``row_plan`` | the plan of the walk over rows, and how it decodes one value |
| ``number_readers``, ``date_readers`` | decoders of single numbers and dates |
| ``planned_casts`` | casts of a column by such a plan |
| ``text_casts`` | casts of other types: bytea, uuid, inet, time |
| ``cast`` | arguments and results of all casts; start reading here |
"""
