"""The error of a broken specification: the package's own, as long as the package can be imported."""

__all__ = ["SpecError"]

try:
    from pgoutput_construct.errors import SpecError
except Exception:  # the generated modules are missing or broken, and regenerating them is what the tools are for

    class SpecError(ValueError):  # type: ignore[no-redef]
        """A specification that breaks a rule of the language; the text names file, line and remedy."""
