"""PostgreSQL's documents: extracting their layouts, checking the specification against them, proposing additions.

``python -m tools.protocol_docs check | propose PAGE``. A page (HTML, SGML or text) becomes blocks (``reader``,
``markup``, ``plain``), these become messages and fields (``recognise``, ``grammar``, ``cells``). ``check`` compares
them with the specification (``align``, ``compare``, ``differences``), ``propose`` writes the YAML that it lacks
(``drafts``, ``suggest``, ``yaml_text``). Start reading at ``document``.

Invariants: what a page says and is not understood is reported, never skipped; nothing is written but what ``propose``
prints.
"""
