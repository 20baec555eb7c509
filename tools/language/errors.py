"""The error of a broken specification: the package's own, if the package can be imported."""

__all__ = ["SpecError"]

try:
    from pgoutput_construct.errors import SpecError
except Exception:  # the generated modules may be missing or broken, and these tools must be able to regenerate them

    class SpecError(ValueError):  # type: ignore[no-redef]
        """A specification that breaks a rule of the language; the text names file, line and remedy."""
