"""One capture of a slot: frames come in, segments of the change log leave, and what is durable is confirmed.

``session`` is one connection of a capture, from the checks (``preparation``) to its end; it starts the ``pump``, which
reads frames, cuts segments and confirms positions, and connects again after a failure that may pass. ``transactions``
knows which transactions are open, and where a segment may be cut; ``overlap`` drops what the server sends again after a
reconnect, and refuses what is not what the log has; ``gaps`` says what the log missed, and begins again where that is
asked for; ``watch`` follows the slot's health. Start reading at ``session``.

Invariants: a position is confirmed after the segment that holds everything before it is durable, never sooner; what the
log holds was sent once; a failure leaves the log readable and its end known.
"""
