"""Plays a case to a client: a publisher whose streams are scripts, and what is known of the client meanwhile.

In: a case, and what the client reports as it does. Out: connections, statuses and problems, in a ``CaseStage``. Start
reading in ``script_sender``.
"""
