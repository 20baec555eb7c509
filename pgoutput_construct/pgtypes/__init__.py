"""PostgreSQL's types: everything that the package knows about a type is in the module of its family.

The bytes of one value come in, or those of a column in a batch, with the OID of their type. Out go PostgreSQL's text,
its binary format, Python objects, Arrow arrays, and expressions in SQL and Spark that produce the same text.

| modules | what they hold |
|---|---|
| ``numbers``, ``text``, ``binary``, ``dates``, ``bits`` | families of values |
| ``network``, ``geometry``, ``text_search``, ``system`` | more families; the last has OIDs, xids, LSNs and the like |
| ``ranges``, ``arrays`` | families over other types |
| ``composites`` | enums and composites, which are not built in |
| ``builtin_types`` | generated: OIDs, sizes, elements and Arrow types, from ``spec/builtin_types.yaml`` |
| ``family``, ``value_codec``, ``type_registry`` | what a family defines, and all families: start reading here |
| ``loader`` | values as Python objects, by psycopg |
| ``arrow_types``, ``column_reader`` | the Arrow type of a column, and its values one by one |
| ``kernels`` | the same values a column at a time, by compiled code |
| ``canonical_text`` | the text that the server and Spark produce alike, for checksums |

Invariants:

- A type belongs to one family, or it is ``like`` another in ``spec/builtin_types.yaml``.
- Text is exactly what the server's output function would write (DateStyle ISO, IntervalStyle postgres, TimeZone UTC).
  Bytes that are not a value of their type raise one of ``value_codec.CODEC_ERRORS``; nothing is guessed.
- ``text`` and ``binary`` of a codec are inverse for every value that a server sends.
- A kernel decodes a value as ``column_reader`` does, or leaves it to ``column_reader``.
- A value that the Arrow type cannot represent is not rounded: the column is null, and ``_untyped`` has the text.
- Families are imported without pyarrow, numba, psycopg and pyspark, which they import inside functions. ``arrow_types``
  and ``column_reader`` need pyarrow; ``kernels`` needs numba as well.

To add a type:

1. Add a row to ``spec/builtin_types.yaml`` and run ``python -m tools.generate``. If the type has the formats of another
   one, set ``like`` in the row: nothing else is needed.
2. Add its ``Codec`` to the ``codecs`` of its family, or its name to ``without_codec`` if only the server can write its
   text. Arrays and ranges of it follow.
3. If its columns are not text in Arrow, name the Arrow type in the row (``arrow``). If no family has this kind of Arrow
   type yet, add it to the family's ``arrow``, with Spark's expression for its text (``spark``), and its canonical text
   in SQL (``sql``) if that differs from PostgreSQL's own.
   A new Arrow type also needs an entry in ``spec/builtin_types.schema.json`` and ``tools/language/builtin_types.py``.
4. If the publisher cannot send its text in the binary form yet (``sends_text``), add a converter in
   ``publisher/_feed/encodings.py``.
5. If columns of it should decode fast, name a kernel in ``compiled``; see ``kernels``.

``tests/pgtypes/test_families.py`` adds a type in this way. ``tests/pgtypes/test_codecs_of_servers.py`` compares the
texts of all types with those of servers.
"""
