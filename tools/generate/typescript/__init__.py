"""The codec in TypeScript: ``typescript_codec`` writes a module of ``spec/typescript/src``; start reading there.

``typescript_reading``, ``typescript_writing`` and ``typescript_json`` write a function for each structure,
``typescript_settings`` the options and the session, ``typescript_connection`` the states of a connection.
``typescript_names`` and ``typescript_context`` are what they share. What does not depend on a specification is written
by hand, in the other files of ``spec/typescript/src``. Public: ``emit_typescript``.
"""
