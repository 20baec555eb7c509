"""How the tables of a warehouse are stored: as Parquet files that notes name, in Delta Lake, in Iceberg.

In comes a dataset as it is to be, with rows, net changes, or files that were written without Spark; out go commits,
each with the version of its dataset. Which of them is made, and when, is not decided here: ``_replicate`` does that.

``sink`` is what a format has to promise. ``parquet_sink``, whose tables are in parts, ``delta_sink`` and
``iceberg_sink`` keep the promise; the last two merge by the statements of ``merge_statement``, take files that were
written without Spark by ``delta_files`` and ``iceberg_files``, and have a variant in which several datasets are one
table, ``shared_tables``. ``sinks`` opens them by name. ``existing_tables`` is what others have where a dataset is to
be, ``dataset_columns`` names what datasets have in addition to the columns of their tables, ``reserved_names`` says
what a format can call no column, ``table_description`` gives a table comments and a key as its source has them. Start
reading at ``sink``.

To add a format of tables:

1. Write its ``Sink``, whose docstrings say what a format has to promise. A format whose tables can only be replaced
   says so by ``is_replaced``, and writes four methods: ``version``, ``read``, ``existing`` and ``replace``
   (``tests/spark/replicate/json_sink.py`` is one); one that merges shares most of ``merge_statement``. The version of a
   dataset is written in the same commit as its rows, or the note is that commit: then the caller writes it, after
   ``replace`` has returned the details of the dataset.
2. Add it to ``sinks.SINKS``; what it does not have to ``sinks.write_options_of``; its jars and session settings to
   ``FORMATS`` in ``spark/formats.py``; its name to ``TABLE_FORMATS`` in ``cli/_options.py``. To be read without Spark,
   it needs a reader in ``lake/_tables``.
3. Add it to ``tests/table_formats.py``, and to ``WAYS`` of ``tests/spark/replicate/test_crashes.py``; what its files
   are to ``tools/faults/orphans.py``; and run ``python -m tools.faults spark`` and ``histories`` with it.

Invariants: a dataset and its version (``lake/_versions.Version``) are written in one commit; readers see a table
before or after a commit, never between; what is not of the warehouse stays, unless the sink ``adopts`` it.
"""
