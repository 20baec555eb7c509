"""The error that ends a command of this package."""

from pgoutput_construct.errors import PgoutputError

__all__ = ["FaultsError"]


class FaultsError(PgoutputError):
    """A run that could not be carried out or finished; the text says what, and where its files are."""
