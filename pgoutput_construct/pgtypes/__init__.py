"""PostgreSQL's types: everything that the package knows of a type stands in the module of its family.

In come the bytes of one value, or of a column's values in a batch, and the OID of their type; out go PostgreSQL's text,
its binary format, Python objects, Arrow arrays, and expressions in SQL and Spark that write the same text.

| modules | what they hold |
|---|---|
| ``numbers``, ``text``, ``binary``, ``dates``, ``bits`` | families of values |
| ``network``, ``geometry``, ``text_search``, ``system`` | more of them; the last is what the server counts and names |
| ``ranges``, ``arrays`` | families over other types |
| ``composites`` | enums and rows of types that are not built in |
| ``builtin_types`` | generated: OIDs, sizes, elements and Arrow types, from ``spec/builtin_types.yaml`` |
| ``codec``, ``family``, ``registry`` | what a family says, and all families together: begin to read here |
| ``loader`` | values as Python objects, by psycopg |
| ``arrow_types``, ``column_reader`` | the Arrow type of a column, and its values one by one |
| ``kernels`` | the same values a column at a time, by compiled code |
| ``canonical`` | the text that a server and Spark write alike, for checksums |

Invariants:

- A type belongs to one family, or it is ``like`` another in ``spec/builtin_types.yaml``.
- Text is what the server's output function would write (DateStyle ISO, IntervalStyle postgres, TimeZone UTC), or there
  is none: bytes that are not of their type raise one of ``codec.CODEC_ERRORS``, and nobody guesses.
- ``text`` and ``binary`` of a codec are inverse for all that a server sends.
- A kernel reads a value as ``column_reader`` does, or leaves it to that: kernels are optional, and never wrong.
- What an Arrow type cannot hold is refused, not rounded: it goes to ``_untyped`` as text.
- Families are imported without pyarrow, numba, psycopg and pyspark: they import those inside functions. ``arrow_types``
  and ``column_reader`` need pyarrow, ``kernels`` needs numba, too.

To add a type:

1. Write a row into ``spec/builtin_types.yaml`` and run ``python -m tools.generate``. If the formats of the type are
   those of another one, say so by ``like``: that is all.
2. Write its ``Codec`` into the ``codecs`` of its family; name it in ``without_codec`` if only the server can write its
   text. Arrays and ranges of it follow.
3. If its columns are more than text in Arrow, name the Arrow type in the row (``arrow``). If Arrow has a kind of types
   that no family has yet, add it to the family's ``arrow``, with the text that Spark writes of it (``spark``) and its
   canonical text in SQL (``sql``), if that is not PostgreSQL's own.
4. If values in binary format shall be fast, name a kernel in ``compiled``; ``kernels`` has those of its kind.

``tests/pgtypes/test_families.py`` adds a type like this. ``tests/pgtypes/test_codecs_of_servers.py`` compares all
types with what servers write.
"""
