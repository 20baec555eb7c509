"""Statements about subscriptions in the SQL of a test, and how they are rewritten for a publisher in between."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

__all__ = ["Statement", "is_on", "split_at_drops", "statements_of"]

_NAME: Final = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_TEXT: Final = r"(?:'(?:[^']|'')*'|\$\$.*?\$\$)"
_NAMES: Final = rf"{_NAME}(?:\s*,\s*{_NAME})*"
_WITH: Final = r"(?:\s+WITH\s*\((?P<options>[^)]*)\))?"
_STATEMENT: Final = re.compile(
    rf"""(?P<verb>CREATE|ALTER|DROP)\s+SUBSCRIPTION\s+(?:IF\s+EXISTS\s+)?(?P<name>{_NAME})
    (?:\s+CONNECTION\s+(?P<connection>{_TEXT}))?
    (?:\s+(?P<what>SET\s+PUBLICATION|ADD\s+PUBLICATION|DROP\s+PUBLICATION|REFRESH\s+PUBLICATION|PUBLICATION
        |SET|ENABLE|DISABLE|RENAME\s+TO)\b)?
    (?:\s+(?P<publications>(?!WITH\b){_NAMES}))?
    (?:\s*\((?P<set>[^)]*)\))?{_WITH}""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_OPTION: Final = re.compile(r"\s*(?P<name>\w+)\s*(?:=\s*(?P<value>'[^']*'|[\w./-]+))?\s*(?:,|$)")


@dataclass(frozen=True)
class Statement:
    """One CREATE, ALTER or DROP SUBSCRIPTION."""

    verb: str
    """CREATE, ALTER or DROP."""
    what: str
    """What ALTER does, such as SET PUBLICATION; "" for everything else."""
    name: str
    connection: str | None
    """The connection string, without its quotes."""
    names: tuple[str, ...]
    """The publications, or the new name of RENAME TO."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What follows WITH, or SET, by lower-case names; an option without a value has the value ``true``."""
    begin: int = 0
    end: int = 0

    @property
    def copies(self) -> bool:
        """Whether tables are to be copied, which they are unless the statement says otherwise."""
        return is_on(self.options.get("copy_data", "true"))

    def rewritten(self, connection: str | None) -> str:
        """Return the statement for a publisher that copies no tables, at a connection string where one is given."""
        words = [self.verb, "SUBSCRIPTION", _quoted(self.name)]
        if connection is not None:
            words += ["CONNECTION", "'" + connection.replace("'", "''") + "'"]
        if self.verb == "CREATE":
            words += ["PUBLICATION"]
        elif self.what:
            words += [self.what]
        words += [", ".join(map(_quoted, self.names))]
        if self.what != "DROP PUBLICATION":
            return " ".join([*filter(None, words), _with({**self.options, "copy_data": "false"})])
        # It cannot say copy_data, and copies tables where it refreshes the list of them.
        text = " ".join([*filter(None, words), _with({**self.options, "refresh": "false"})])
        again = f"; ALTER SUBSCRIPTION {_quoted(self.name)} REFRESH PUBLICATION WITH (copy_data = false)"
        return text + again * is_on(self.options.get("refresh", "true"))


def statements_of(sql: str) -> Iterator[Statement]:
    """Yield the statements about subscriptions in a text, in their order."""
    for match in _STATEMENT.finditer(sql):
        found = match.groupdict()
        what = " ".join((found["what"] or "").upper().split())
        verb, connection = found["verb"].upper(), found["connection"]
        if connection is not None:
            connection = connection[2:-2] if connection[0] == "$" else connection[1:-1].replace("''", "'")
        options = _options(found["options"] or found["set"] or "")
        names = tuple(_plain(name) for name in re.findall(_NAME, found["publications"] or ""))
        is_create = verb == "CREATE"
        yield Statement(
            verb, "" if is_create else what, _plain(found["name"]), connection, names, options, *match.span()
        )


def split_at_drops(sql: str) -> list[str]:
    """Return the parts of a text: one ends with each DROP SUBSCRIPTION that another statement follows."""
    found, parts, begin = list(statements_of(sql)), list[str](), 0
    for statement, following in pairwise(found):
        if statement.verb == "DROP" and following.verb == "CREATE":
            end = sql.index(";", statement.end) + 1
            parts.append(sql[begin:end])
            begin = end
    return [*parts, sql[begin:]]


def is_on(value: str) -> bool:
    """Return whether a boolean option of this value is on (defGetBoolean())."""
    return value.strip("'").lower() in ("true", "on", "1", "yes")


def _with(options: Mapping[str, str]) -> str:
    return "WITH (" + ", ".join(f"{name} = {value}" for name, value in options.items()) + ")"


def _options(text: str) -> dict[str, str]:
    return {match["name"].lower(): match["value"] or "true" for match in _OPTION.finditer(text) if match["name"]}


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
