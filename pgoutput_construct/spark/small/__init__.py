"""Tables of few rows, brought up to date in Arrow: a job of Spark for each would cost many times what there is to do.

What is done is what ``netting`` and ``keyed`` say in Spark's words, for a table whose rows have keys. A second
definition is needed because a task of Spark cannot plan a query of its own. It is the narrower one: whatever is
not simple is left to the other (``advanced_rows`` returns None), and tests hold both equal.
"""
