"""Mutated bytes for everything that reads bytes: in bulk through the kernels, and guided by coverage."""
