"""Commands for maintainers, run in a clone: ``python -m tools.generate`` and the others; the package has none of it."""

from importlib.util import find_spec

_missing = [name for name in ("construct", "jsonschema", "yaml") if find_spec(name) is None]
if _missing:
    raise SystemExit(f"Error: not installed: {', '.join(_missing)}; run: pip install '.[maintain]'")
