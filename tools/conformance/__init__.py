"""Clients of logical replication, as the conformance suite tests them.

``subscription`` is PostgreSQL's own, ``forked`` runs those in Python; ``adapters`` are programs of a page each that
follow a slot with one library, and report what they find.
"""
