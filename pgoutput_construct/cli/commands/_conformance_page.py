"""The report of a conformance run as a self-contained HTML page."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pgoutput_construct import __version__
from pgoutput_construct.cli.commands._conformance_bytes import picture_of
from pgoutput_construct.cli.commands._inspect_picture import escaped

if TYPE_CHECKING:
    from pgoutput_construct.conformance import CaseResult

__all__ = ["page"]

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1f2328; --page: #fff; --quiet: #59636e; --line: #d1d9e0; --good: #1a7036;
  --must: #b3261e; --should: #7d5200 }
body { color: var(--text); background: var(--page); font: 15px/1.5 system-ui, sans-serif; max-width: 75em;
  margin: 2em auto; padding: 0 1.5em; overflow-wrap: anywhere }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin: 2em 0 .4em }
.note { color: var(--quiet) } table { border-collapse: collapse; width: 100%; table-layout: fixed }
td { text-align: left; vertical-align: top; padding: .25em .8em .25em 0; border-top: 1px solid var(--line) }
td:first-child { width: 7.5em } td:nth-child(2) { width: 19em } td:nth-child(3) { width: 4em }
.why td { border: 0; padding: 0 0 1em 8em } dl { margin: 0 0 .5em }
code, pre { font: 13px/1.45 Menlo, Consolas, monospace }
pre { color: #1f2328; background: #f6f8fa; padding: .8em; overflow-x: auto; margin: .5em 0; overflow-wrap: normal }
.passes { color: var(--good) } .na { color: var(--quiet) } .must { color: var(--must); font-weight: 600 }
.should { color: var(--should); font-weight: 600 }
.count { display: inline-block; font-size: 1.3em; margin-right: 1.2em }
dt { color: var(--quiet); float: left; clear: left; width: 6em } dd { margin-left: 7em }
@media (max-width: 50em) {
  body { padding: 0 1em } tr { display: block; border-top: 1px solid var(--line); padding: .4em 0 }
  td, td:first-child, td:nth-child(2), td:nth-child(3) { display: inline; border: 0; width: auto }
  td:last-child, .why td:first-child { display: block; padding: 0 } tr.why { border: 0 }
  dt { float: none } dd { margin-left: 1em }
}
@media (prefers-color-scheme: dark) {
  :root { --text: #d5dbe1; --page: #101418; --quiet: #98a2ad; --line: #303840; --good: #5fc27e; --must: #ff8a80;
    --should: #e0b050 }
  pre { filter: invert(1) hue-rotate(180deg) }
}
"""
"""The bytes are drawn in colours for a light page: a dark one inverts them, hues excepted."""


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
    titles = {"passes": "pass", "must": "fail a must", "should": "fail a should", "na": "not applicable"}
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
    verdict = f'<td class="{_kind(result)}">{_text(result.verdict)}</td>'
    named = f"<td><code>{_text(case.name.partition('/')[2])}</code></td><td>{case.level}</td>"
    row = f'<tr title="{_text(case.reason)}">{verdict}{named}<td>{_text(case.demand)}</td></tr>'
    return row if result.is_good else f'{row}\n<tr class="why"><td colspan="4">{_failure(result)}</td></tr>'


def _failure(result: "CaseResult") -> str:
    pairs = {"because of": result.case.reason, "but": result.problem}
    if result.expected is not None:
        pairs["expected"] = json.dumps(result.expected.to_json(), ensure_ascii=False)[:600]
    if result.reported:
        pairs["reported"] = result.reported[:600]
    listed = "".join(f"<dt>{name}</dt><dd>{_text(text)}</dd>" for name, text in pairs.items())
    at = result.expected.step if result.expected is not None else result.case.play.refused
    picture = picture_of(result.case, at)
    drawn = "" if picture is None else f"<pre>{picture.fragment()}</pre>"
    errors = f"<pre>{_text(result.errors[-2000:])}</pre>" if result.errors else ""
    return f"<dl>{listed}</dl>{drawn}{errors}"


def _text(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))
