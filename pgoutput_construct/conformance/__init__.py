"""A conformance suite for clients of logical replication: what each must do, played to it, and a verdict on each case.

In come a client, which is a command or an object, and cases; out come verdicts. A case is a script of frames with its
meaning: it says what a client must do and where that follows from, PostgreSQL's documentation or what its own apply
worker does. PostgreSQL's own subscriptions pass every case that applies to them: that is tested, and what they do not
pass is not demanded.

- ``conformance_case``, ``steps``, ``meaning``: what a case is; start reading here
- ``case_group``, ``case_writer``: how cases are written; ``_cases``: the cases, a module for each group
- ``suite``: all of them; ``suite_file``: the same as data, for other languages (``spec/conformance.jsonl``)
- ``conformance_client``, ``command_client``: who is tested
- ``case_run``, with ``_play``: plays a case to a client, and judges

Invariants: a case is the same in each run; what a client confirmed and reported decides, never what it says of itself;
time counts only where a case is about time. It needs the extra ``publisher``.
"""

from pgoutput_construct.conformance.case_run import CaseResult, Verdict, run_case
from pgoutput_construct.conformance.command_client import CommandClient
from pgoutput_construct.conformance.conformance_case import ConformanceCase, Level
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.conformance.suite import all_cases, find_cases

__all__ = [
    "CaseResult",
    "ClientTask",
    "CommandClient",
    "ConformanceCase",
    "ConformanceClient",
    "Level",
    "RunningClient",
    "Verdict",
    "all_cases",
    "find_cases",
    "run_case",
]
