"""PostgreSQL's documents: extracting their layouts, checking the specification against them, proposing additions."""
