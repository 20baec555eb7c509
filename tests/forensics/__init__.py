"""Tests of what happened to rows, and of what takes it back."""
