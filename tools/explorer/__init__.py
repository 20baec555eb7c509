"""The explorer of the documentation: a page that shows the bytes of messages, field by field.

docs/explorer has its text, its style and its program, in TypeScript. The program reads bytes by the generated codec
(spec/typescript); ``esbuild`` makes one classic script of both, since browsers load no modules from disk.
``specification`` adds what the specification says of each field, ``examples`` messages from the golden vectors and from
recorded streams. ``build`` writes the page; the documentation has it built by ``pages``, an extension of Sphinx.
"""
