"""The generator: one small emitter for each output, and a table that names them."""
