"""PostgreSQL's own subscription tests, with a capture and a publisher between each subscription and its server.

``python -m tools.subscription_tests SOURCE`` runs the Perl files of a source tree unedited. ``Between.pm`` has them ask
a ``broker``, which starts a ``link`` (a capture and a publisher) for each subscription; ``statements`` are those that
tests send to a publisher, ``differences`` are the checks that cannot hold through a log, each with its reason. Start
reading at ``link``.
"""
