"""The codec in Rust: ``rust_codec`` writes a module of ``spec/rust/src`` from a specification; start reading there.

``rust_reading``, ``rust_writing`` and ``rust_json`` write a function for each structure, ``rust_settings`` the options
and the session, ``rust_connection`` the states of a connection. ``rust_names`` and ``rust_code`` are what they share:
how things are called, and how lines are written so that rustfmt changes nothing. What does not depend on a
specification is written by hand, in the other files of ``spec/rust/src``. Public: ``emit_rust``.
"""
