"""Benchmarks: every engine on recorded messages, compared with other parsers, with copying, and with Arrow alone.

``python -m tools.benchmark`` (see ``--help``) measures messages and batches: ``cases`` are recorded once
(``captures``), ``engines`` lists what is measured, ``measure`` runs engines in rounds, ``goals`` are the ratios to
reach, ``report`` shows the result. Other commands measure one subject each: capture, client, snapshot, log,
lineage, and in ``spark`` the source, tables, tasks, memory and freshness. ``harness`` builds parsers in other languages
to compare with, and ``alternatives`` runs whole pipelines of others.
"""
