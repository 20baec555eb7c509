"""Fuzzing of everything that reads bytes: coverage-guided for each reader, in bulk for the kernels.

``python -m tools.fuzz`` (see ``--help``). A target (``targets``) takes bytes and raises Finding if a reader raises
anything but our errors, or if two engines disagree. ``guided`` runs targets under libFuzzer, each in a ``child``;
``bulk`` mutates payloads (``mutate``) and compares the kernels with the codec (``compare``). Findings are added to
tests/fuzz/test_found.py.
"""
