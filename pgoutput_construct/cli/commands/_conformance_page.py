"""The report of a conformance run as a self-contained HTML page."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pgoutput_construct import __version__
from pgoutput_construct.cli.commands._conformance_bytes import picture_of

if TYPE_CHECKING:
    from pgoutput_construct.conformance import CaseResult

__all__ = ["page"]

_STYLE: Final = """
body { color: #1f2328; background: #fff; font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto;
  padding: 0 1.5em }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin: 2em 0 .4em }
.note { color: #59636e } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .25em .8em .25em 0; border-top: 1px solid #d1d9e0 }
td:first-child, td:nth-child(2) { white-space: nowrap } code, pre { font: 13px/1.45 Menlo, Consolas, monospace }
pre { background: #f6f8fa; padding: .8em; overflow-x: auto; margin: .5em 0 }
.passes { color: #1a7036 } .na { color: #59636e } .must { color: #b3261e; font-weight: 600 }
.should { color: #7d5200; font-weight: 600 } .count { font-size: 1.3em; margin-right: 1.2em }
dt { color: #59636e; float: left; clear: left; width: 6em } dd { margin-left: 7em }
"""


def page(name: str, results: "Sequence[CaseResult]") -> str:
    """Return the page.

    Args:
        name: The client.
        results: Its results.
    """
    groups = "\n".join(_group(group, list(found)) for group, found in groupby(results, lambda each: each.case.group))
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Conformance of {_text(name)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Conformance of {_text(name)}</h1>
<p class="note">Logical replication (pgoutput), conformance suite of pgoutput_construct {__version__}</p>
<p>{"".join(_counts(results))}</p>
{groups}
</body>
</html>
"""


def _counts(results: "Sequence[CaseResult]") -> Iterator[str]:
    kinds = [_kind(result) for result in results]
    titles = {"passes": "pass", "must": "fail what is a must", "should": "fail what should be", "na": "not applicable"}
    for kind, title in titles.items():
        yield f'<span class="count {kind}">{kinds.count(kind)} {title}</span>'


def _kind(result: "CaseResult") -> str:
    if result.is_good:
        return "passes" if result.verdict == "passes" else "na"
    return str(result.case.level)


def _group(name: str, results: "Sequence[CaseResult]") -> str:
    rows = "\n".join(_row(result) for result in results)
    good = sum(result.verdict == "passes" for result in results)
    counted = sum(result.verdict != "not applicable" for result in results)
    return f"<h2>{_text(name)} <span class='note'>{good} of {counted}</span></h2>\n<table>\n{rows}\n</table>"


def _row(result: "CaseResult") -> str:
    case = result.case
    shown = _text(case.demand) if result.is_good else _failure(result)
    verdict = f'<td class="{_kind(result)}">{_text(result.verdict)}</td>'
    named = f"<td><code>{_text(case.name.partition('/')[2])}</code></td><td>{case.level}</td>"
    return f'<tr title="{_text(case.reason)}">{verdict}{named}<td>{shown}</td></tr>'


def _failure(result: "CaseResult") -> str:
    pairs = {"because of": result.case.reason, "but": result.problem}
    if result.expected is not None:
        pairs["expected"] = str(result.expected.to_json())[:600]
    if result.reported:
        pairs["reported"] = result.reported[:600]
    listed = "".join(f"<dt>{name}</dt><dd>{_text(text)}</dd>" for name, text in pairs.items())
    at = result.expected.step if result.expected is not None else result.case.play.refused
    picture = picture_of(result.case, at)
    drawn = "" if picture is None else f"<pre>{picture.fragment()}</pre>"
    errors = f"<pre>{_text(result.errors[-2000:])}</pre>" if result.errors else ""
    return f"{_text(result.case.demand)}<dl>{listed}</dl>{drawn}{errors}"


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))
