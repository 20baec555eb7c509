"""PostgreSQL's documents: what they say, whether the specification agrees, and what to add to it."""
