"""The kernels of columnar/typed in plain Python, which may read and write nothing outside their arrays."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from tests.spec_fuzz.checked_reads import WORD, OutsideError, copy_word, inlined, put_word, u8, u16, u32, u64

__all__ = [
    "WORD",
    "Checked",
    "checked_registry",
    "copy_word",
    "inlined",
    "kernel",
    "put_word",
    "u8",
    "u16",
    "u32",
    "u64",
]

COPY: Final = "checked"
"""The package of the copies, while they are there."""
COLUMNAR: Final = "pgoutput_construct.columnar"
MODULES: Final = (
    "gather",
    *(
        f"typed.{name}"
        for name in ("column", "arrays", "digits", "decimals", "moments", "numbers", "texts", "registry")
    ),
)
"""Each after those that it imports."""


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


@contextmanager
def checked_registry() -> Iterator[ModuleType]:
    """Import copies of columnar/gather and columnar/typed whose kernels are checked; return the table of types."""
    names = [f"{COPY}.{name}" for name in MODULES]
    try:
        sys.modules[COPY], sys.modules[f"{COPY}.typed"] = ModuleType(COPY), ModuleType(f"{COPY}.typed")
        for name in names:
            _copy(name)
        yield sys.modules[names[-1]]
    finally:
        for name in [COPY, f"{COPY}.typed", *names]:
            sys.modules.pop(name, None)


def _copy(name: str) -> None:
    spec = find_spec(name.replace(COPY, COLUMNAR, 1))
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8").replace(f"{COLUMNAR}.jit", __name__)
    for place in ("typed", "gather"):
        text = text.replace(f"{COLUMNAR}.{place}", f"{COPY}.{place}")
    module = sys.modules[name] = ModuleType(name)  # dataclasses look themselves up there
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
    exec(compile(text, spec.origin, "exec"), module.__dict__)
    vars(module).update({key: _checked(value) for key, value in vars(module).items()})
