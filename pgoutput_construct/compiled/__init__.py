"""What kernels are made with: the compiler and unchecked memory access (``jit``), buffers (``memory``), C functions.

A kernel is a Python function that numba compiles. It gets numpy arrays and numbers, holds no Python objects, allocates
nothing and releases the GIL. ``columnar.kernels`` and ``pgtypes.kernels`` are written with these. Nothing here is
public. Needs numba and pyarrow. ``jit`` documents the rules that keep unchecked memory access safe; start reading
there.
"""
