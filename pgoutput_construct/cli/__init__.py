"""The command ``pgoutput``: one module for each command, and private ones for what several commands share.

``commands`` lists the commands with their modules and extras; ``group`` imports each when it is run, and turns errors
into one line and an exit status (1 for bad input, 130 after Ctrl-C, 141 when the reader of the output is gone). A
module of a command imports nothing of an extra other than ``cli`` before the command runs, so that ``--help`` is quick
and works wherever click is installed.

What goes in: arguments (``_options``), files and pipes (``_input``). What comes out: JSON lines (``_json_lines``),
tables and lines for people (``_printing``, in which no byte of a server or a log can move a cursor), progress and logs
on standard error (``_progress``, ``_logging``), metrics for Prometheus (``_collectors``).

To add a command, add a module with a click command, and a line in ``commands``. Start reading at ``commands``, then
``decode``. Nothing here is public other than the command line itself.
"""
