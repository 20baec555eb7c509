"""The kernels of pgtypes/kernels in plain Python, which may read and write nothing outside their arrays."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from tests.spec_fuzz.checked_reads import (
    WORD,
    OutsideError,
    copy_word,
    double_bits,
    inlined,
    put8,
    put32,
    put64,
    put_length,
    put_word,
    single_bits,
    u8,
    u16,
    u32,
    u64,
)

__all__ = [
    "WORD",
    "Checked",
    "checked_registry",
    "copy_word",
    "double_bits",
    "entry_at",
    "inlined",
    "kernel",
    "put8",
    "put32",
    "put64",
    "put_entry",
    "put_length",
    "put_word",
    "single_bits",
    "u8",
    "u16",
    "u32",
    "u64",
]

COPY: Final = "checked"
"""The package of the copies, while they are there."""
JIT: Final = "pgoutput_construct.compiled.jit"
COPIED: Final = {
    f"{COPY}.pgtypes": "pgoutput_construct.pgtypes",
    f"{COPY}.batch_arrays": "pgoutput_construct.columnar.batch_arrays",
}
"""What the copies are made of."""
PACKAGES: Final = (COPY, f"{COPY}.pgtypes", f"{COPY}.pgtypes.kernels")


class Checked(np.ndarray[Any, Any]):
    """An array that raises OutsideError for places outside it, negative ones too; it cuts numbers off as numba does."""

    def __getitem__(self, key: Any) -> Any:
        """Return an entry, a Python number where it is one."""
        found = super().__getitem__(self._within(key))
        return found.item() if isinstance(found, np.generic) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write an entry."""
        if type(value) is int and self.dtype.kind in "iu":
            value = np.array(value & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(self.dtype)
        super().__setitem__(self._within(key), value)

    def _within(self, key: Any) -> Any:
        for place, size in zip(key if isinstance(key, tuple) else (key,), self.shape, strict=False):
            if isinstance(place, int) and not 0 <= place < size:
                raise OutsideError(f"entry {place} of {size}")
        return key


def _checked(value: Any) -> Any:
    return value.view(Checked) if isinstance(value, np.ndarray) else value


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stand in for jit.kernel: the function in plain Python, over checked arrays."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        return function(*map(_checked, arguments))

    return run


def entry_at(array: Any, at: int) -> int:
    """Read an entry of an array by its place among all; a negative one is outside."""
    return int(array.reshape(-1)[at])


def put_entry(array: Any, at: int, number: int) -> None:
    """Write an entry of an array by its place among all."""
    array.reshape(-1)[at] = number


class _Copies(MetaPathFinder, Loader):
    """Imports copies of columnar/batch_arrays and pgtypes whose kernels are checked."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        mine = fullname.partition(".")[0] == COPY
        return spec_from_loader(fullname, self, is_package=fullname in PACKAGES) if mine else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        for copy, original in COPIED.items():
            name = name.replace(copy, original)
        origin = None if module.__name__ in PACKAGES else find_spec(name)
        if origin is None or origin.origin is None:
            return
        text = Path(origin.origin).read_text(encoding="utf-8").replace(JIT, __name__)
        for copy, original in COPIED.items():
            text = text.replace(original, copy)
        exec(compile(text, origin.origin, "exec"), module.__dict__)
        vars(module).update({key: _checked(value) for key, value in vars(module).items()})


@contextmanager
def checked_registry() -> Iterator[ModuleType]:
    """Import the copies, and return their table of types."""
    finder = _Copies()
    sys.meta_path.insert(0, finder)
    try:
        yield import_module(f"{COPY}.pgtypes.kernels.cast_table")
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == COPY]:
            del sys.modules[name]
