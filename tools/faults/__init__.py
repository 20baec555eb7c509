"""Fault injection: a capture, its server, its network and its log are disrupted; then the result is checked.

``python -m tools.faults COMMAND`` (see ``--help``). The truth comes from a witness (triggers that record each change in
the same transaction), from the tables on the server, or from a simpler and slower computation. Every run prints its
seed; the statements are repeatable, the timing is not.

Files by command: ``capture``: attack, fault_injection, capture_process, proxy, maintenance, writers, steps, witness,
contents, judge. ``log``: upkeep, upkeep_child. ``tables``: upkeep_tables, bank, rebuilder. ``snapshot``: snapshot,
snapshot_tables, replay. ``altered``: alterations. ``spark``: replicated, live_slot, orphans. ``histories``: histories,
generated_*, history_runs, history_kills, noted_tables, netted_tables, warehouse_tables, shrinking. ``undo``: undone,
witnessed_rows, with the generated_* of histories. ``lost-histories``: lost_histories, standby. ``undecodable`` and
``timeouts``: obstacles. ``starved``: starvation. Several use committed_spans. Start reading at ``attack``.
"""
