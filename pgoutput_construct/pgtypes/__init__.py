"""Values of PostgreSQL's built-in types, in text and in binary format: each as the server itself would write it."""
