"""PostgreSQL's own subscription tests, with a capture and a publisher between each subscription and its server."""
