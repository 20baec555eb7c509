"""The generator: one small emitter for each generated file, and a table of them (``outputs``)."""
