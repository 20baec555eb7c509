"""The reference pages: ``reference_page`` writes one from a specification, ``reference_changes`` what changed.

Start reading with ``reference_page``. ``reference_fields``, ``reference_states``, ``reference_connection`` and
``reference_graph`` write its sections, ``reference_text`` words and links. ``reference_table`` writes the descriptions
of fields as a module of Python, from the same texts. Public: ``emit_reference``, ``emit_changes``, ``emit_fields``.
"""
