"""What kernels need: a compiler (``jit``) and memory that they fill (``memory``). Needs numba and pyarrow."""
