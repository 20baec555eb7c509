"""What the stream does not say: tables, columns, publications and types, as the catalog has them.

``catalog_watch`` asks for them when the stream gives a reason and now and then, ``table_catalog`` reads them,
``catalog_state`` compares them with what the log has already, so that only what has changed is written, as events.
"""
