"""The generator: ``python -m tools.generate`` writes every file that follows from ``spec/``; ``--check`` compares them.

``outputs`` is the table of generated files, each with its emitter; start reading there. Emitters of Python:
``messages`` (classes), ``definitions`` (construct), ``codec*`` (the codec), ``kernel*`` (the kernels), ``protocol``,
``builtin_types``. Of other languages: ``rust*``, ``golang`` and ``go_*``, ``typescript*`` (all by ``typed_layouts``),
``dissector*`` (Wireshark), ``kaitai``. Of pages: ``reference*``. Of data: ``vectors*``. For a protocol of somebody's
own: ``own_protocol``, ``own_codecs``. ``words``, ``text``, ``writer`` and ``lua_text`` are what they share.

Invariants: an emitter reads the model of ``tools.language`` and nothing else; the same specification gives the same
bytes; no emitter knows the name of a message or field: special cases are in the specification.
"""
