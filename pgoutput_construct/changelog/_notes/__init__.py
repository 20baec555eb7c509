"""Small files in a log, next to its segments: how far all is durable, which copies are asked for; and sizes of rows."""
