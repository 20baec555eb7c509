"""The cases, a module for each group."""
