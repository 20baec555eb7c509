"""The golden vectors: ``golden_vectors`` writes those of a specification, ``vectors_schema`` their JSON schema.

Start reading with ``golden_vectors``. ``vectors_settings`` draws options and states, ``vectors_samples`` messages,
``vectors_damage`` what is refused; ``vectors_reader`` decides what each is, without the engines that are tested with
them. Invariant: a vector is accepted or refused by the specification alone. Public: ``emit_vectors``,
``emit_vectors_schema``.
"""
