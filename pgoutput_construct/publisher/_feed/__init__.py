"""What a publisher serves: transactions, copies and messages in their order, as the bytes that a client asked for.

A ``feed`` yields what there is, from a change log (``log_feed``, which needs what reading a log needs) or from messages
(``message_feed``); a ``cursor`` goes through a feed for one client, from the position that it confirmed, or through a
script as it stands, with its faults; ``rendering`` makes the messages of the client's protocol version and options, in
its format and encoding (``encodings``). Start reading at ``feed``.

Invariants: items have increasing end LSNs, but for copies that are sent out of order (``changelog/timeline.py`` says
when); a cursor yields whole transactions; a feed that grows never changes what it has yielded, unless its
``generation`` does.
"""
