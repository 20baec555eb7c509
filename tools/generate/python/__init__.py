"""Python: the message classes, the definitions, the codec, the kernels, and the tables of ``pgoutput_construct``.

``messages`` writes the classes, ``definitions`` the Structs of construct, ``codec`` (with the other ``codec_*``) the
fast engine, ``kernels`` (with ``kernel_*``) the functions that numba compiles, ``protocol`` options and states,
``builtin_types`` PostgreSQL's types. Start reading with ``definitions``: it is nearest to the specification, and each
other engine accepts and refuses what its Structs do. Public: the ``emit_*`` functions.
"""
