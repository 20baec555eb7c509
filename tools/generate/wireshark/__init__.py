"""The dissector for Wireshark: ``dissector`` writes it, in Lua, for all specifications together; start reading there.

``dissector_elements`` writes tables of fields, ``lua_text`` texts of Lua. Public: ``emit_dissector``.
"""
