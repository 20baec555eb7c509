"""The command ``pgoutput``: one module per command in ``commands/``, and here what they share.

What comes in: arguments (``_options``), files and pipes (``_input``). What leaves: JSON lines (``json_lines`` of
``wire``), tables and lines for people (``_printing``), progress and logs on standard error (``_progress``,
``_logging``), metrics for Prometheus (``_collectors``), and an exit status.

Invariants: a command's module imports no extra other than ``cli`` before the command runs, so that ``--help`` is quick
and works wherever click is installed; an error is one line on standard error and an exit status (1 for invalid input,
130 after Ctrl-C, 141 if the reader of the output is gone), a traceback is a bug; no byte of a server or a log can move
a terminal's cursor.

``command_table`` lists the commands with their extras; ``group`` imports a command when it is run, and turns errors
into text. To add a command, add a module with a click command to ``commands/``, and a line to ``command_table``. Start
reading there, then in ``commands/decode_command``. Nothing here is public other than the command line itself.
"""
