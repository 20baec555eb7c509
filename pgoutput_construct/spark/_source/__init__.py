"""The data source ``pgoutput``: what a session calls by ``format("pgoutput")``; driver and executors import it."""

__all__: list[str] = []
