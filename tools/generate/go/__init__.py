"""The codec in Go: ``go_codec`` writes a package of ``spec/go`` from a specification; start reading there.

``go_messages`` writes the types, ``go_reading``, ``go_writing`` and ``go_json`` a function for each structure,
``go_settings`` the options, ``go_session`` the session, ``go_connection`` the states of a connection. ``go_names`` and
``go_module`` are what they share: how things are called, and how lines are written so that gofmt changes nothing. What
does not depend on a specification is written by hand, in ``spec/go/wire``. Public: ``emit_go``.
"""
