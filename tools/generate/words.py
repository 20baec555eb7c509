"""Conditions and availability as text, for pages, comments and errors."""

from collections.abc import Callable, Iterator

from tools.language import Message, Spec
from tools.language.conditions import Bit, Every, Flag, Not, Since, Some, Term, Until, every, range_of

__all__ = ["availability", "in_words"]


def availability(spec: Spec, message: Message | None) -> Iterator[str]:
    """Yield the versions that have a message, and who sends it, as a sentence; nothing for no message."""
    if message is None:
        return
    any_server = ["any PostgreSQL"] * spec.is_postgresql
    said = [f"PostgreSQL {message.server} and newer"] if message.server else any_server
    said += [f"protocol version {message.since} and newer"] * bool(message.since)
    said += [f"sent by the {message.sender}"] * bool(message.sender)
    text = ", ".join(said)
    if text:
        yield f"{text[0].upper()}{text[1:]}."


def in_words(term: Term | None, code: Callable[[str], str] = str) -> str:
    """Return a condition as text, empty for one that always holds; ``code`` marks up the names in it."""
    low, high, rest = range_of(term)
    versions = f"protocol versions {low} to {high}" if low and high else ""
    versions = versions or (f"protocol version {low} and newer" if low else "")
    versions = versions or (f"protocol version {high} and older" if high else "")
    return ", ".join(part for part in (_words(rest, code), versions) if part)


def _words(term: Term | None, code: Callable[[str], str]) -> str:
    match term:
        case Flag(name):
            return f"{code(name)} is set"
        case Bit(field, mask):
            return f"bit {mask} of {code(field)} is set"
        case Since() | Until():
            return in_words(term, code)
        case Not(Flag(name)):
            return f"{code(name)} is not set"
        case Not(Bit(field, mask)):
            return f"bit {mask} of {code(field)} is not set"
        case Not(inner):
            return f"not ({in_words(inner, code)})"
        case Every(terms):
            return " and ".join(_inner(each, code) for each in terms)
        case Some(terms):
            return " or ".join(_inner(each, code) for each in terms)
    return ""


def _inner(term: Term, code: Callable[[str], str]) -> str:
    said = in_words(every(term), code)
    return f"({said})" if isinstance(term, Some | Every) else said
