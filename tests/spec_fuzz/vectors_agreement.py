"""What the golden vectors of a specification say, held against what the engines and Kaitai Struct's readers do."""

from collections.abc import Callable, Mapping
from typing import Any

from pgoutput_construct.errors import DecodeError
from tests.spec_fuzz.agreement import REFUSED, Engines
from tests.spec_fuzz.package import Package
from tools.generate.vectors.golden_vectors import vectors
from tools.generate.vectors.vectors_settings import Setting

__all__ = ["check_vectors"]

MOST = 120
"""How many vectors are looked at for a specification: evenly chosen from all of them."""

Reads = Callable[[Mapping[str, Any], bytes], bool]
"""Whether a reader of another kind accepts bytes under parameters."""


def check_vectors(package: Package, parameters: Mapping[str, Any], reads: Reads | None = None) -> int:
    """Check that all accept what vectors accept, and refuse the rest where they say; return how many were checked.

    Nothing is drawn here: a package under the same parameters as before is not looked at again.
    """
    under = tuple(parameters.values())
    if under in package.checked:
        return 0
    found = list(vectors(package.spec, [Setting(parameters, parameters)]))
    chosen = found[:: len(found) // MOST + 1]
    engines = Engines(package, parameters)
    for vector in chosen:
        data, expected = bytes.fromhex(vector["hex"]), "fields" in vector
        accepted = engines.check_bytes(data) != REFUSED
        assert accepted == expected, f"{vector}: definitions say {accepted}"
        if not accepted:
            assert _offset(package, data, parameters) == vector["refuse"]["offset"], vector
        if reads is not None:
            read = reads(parameters, data)
            assert read == expected, f"{vector}: Kaitai Struct says {read}"
    package.checked.add(under)
    return len(chosen)


def _offset(package: Package, data: bytes, parameters: Mapping[str, Any]) -> int | None:
    try:
        package.reference.parse(data, parameters)
    except DecodeError as error:
        return error.offset
    return None
