"""The commands: a module each, ``..._command``, and private ones for what one or two of them print.

What comes in: click's arguments, converted by ``_options`` of ``cli``. What leaves: what a command writes, through
``_printing`` and ``_progress`` of ``cli``. A module imports no extra other than ``cli`` at its top.

Start reading in ``decode_command``, the smallest that has all parts of a command. Of ``inspect``, ``_inspect_picture``
draws the bytes of a message, ``_inspect_rows`` shows rows; ``_tail_output`` writes what ``tail`` reads, and
``_log_report`` prints what ``log`` has found. Nothing here is public: ``command_table`` lists the commands.
"""
