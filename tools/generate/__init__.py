"""The generator: ``python -m tools.generate`` writes every file that follows from ``spec/``; ``--check`` compares them.

``outputs`` is the table of generated files, each with its emitter; start reading there. The rooms are what is
written: ``python``, ``rust``, ``go``, ``typescript``, ``wireshark``, and ``kaitai`` as one module; the pages of
``reference``, and the data of ``vectors``. For a protocol of somebody's own: ``own_protocol``, ``own_codecs``. What
rooms share is here: ``typed_layouts`` (the layouts as languages with static types need them), ``check_programs``,
``taken_names`` and ``reserved`` (names that no codec can have), ``words``, ``text``, ``writer``.

Invariants: an emitter reads the model of ``tools.language`` and nothing else; the same specification gives the same
bytes; no emitter knows the name of a message or field: special cases are in the specification.
"""
