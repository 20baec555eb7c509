"""Pipelines that a user could choose instead of this project, measured on the contents of one slot.

``change_source`` is the server with the table and the slots, ``pipeline`` says what each pipeline has to do, and four
modules have the pipelines: ``own``, ``debezium``, ``ingestr`` and ``verified_source`` (dlt). ``process_usage`` measures
their processes, ``table_rows`` compares what they have written, and ``main`` is the command. ``table_child`` and
``dlt_child`` run in environments of other packages.
"""
