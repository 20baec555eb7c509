"""Where a change log is stored: a directory (``local_store``), an object store (``remote_store``); by ``address``.

``store`` says what every store can do. Invariant: a file is either complete under its name or not there, and the
creation of a name that exists fails: two writers cannot both have it.
"""
