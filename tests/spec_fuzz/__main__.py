"""Invent specifications, and check that everything that they generate agrees.

python -m tests.spec_fuzz [COUNT [SEED]]    2,000 where it is left out; prints the one on which something disagrees
"""

import sys
import time
from collections import Counter
from contextlib import nullcontext
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pgoutput_construct import SpecError
from tests.spec_fuzz.framed import framed_specifications
from tests.spec_fuzz.framed_agreement import follow_framed
from tests.spec_fuzz.fuzz import follow
from tests.spec_fuzz.kaitai_readers import Compiler
from tests.spec_fuzz.specifications import as_yaml, specifications
from tests.spec_fuzz.vocabulary import asserted_by, vocabulary, words_of
from tools.kaitai import missing_compiler
from tools.language import load_text

FRAMED = 10
"""One specification in this number is that of a connection."""
PHASES = (Phase.generate,)


class Run:
    """One run, and what it has seen."""

    def __init__(self, count: int, number: int, compiler: Compiler | None) -> None:
        self.compiler = compiler
        self.count = count
        self.number = number
        self.words: Counter[str] = Counter()
        self.followed = 0
        self.failed = ""
        """The last specification on which something disagreed."""
        self.refused: Counter[str] = Counter()

    def check(self) -> None:
        """Follow the specifications; raise the first disagreement."""
        quiet = list(HealthCheck)
        some = settings(
            max_examples=self.count, deadline=None, database=None, suppress_health_check=quiet, phases=PHASES
        )

        @seed(self.number)
        @some
        @given(st.integers(1, FRAMED), st.data())
        def agree(kind: int, draw: st.DataObject) -> None:
            framed = kind == FRAMED
            data = draw.draw(framed_specifications() if framed else specifications(), "specification")
            self._one(data, draw, framed)

        agree()

    def _one(self, data: dict[str, Any], draw: st.DataObject, framed: bool) -> None:
        text = as_yaml(data)
        try:
            spec = load_text(text, "fuzzed.yaml")
        except SpecError as error:
            self.refused[str(error).partition(": ")[2][:60]] += 1
            return
        self.words += words_of(data)
        self.followed += 1
        try:
            follow_framed(spec, draw) if framed else follow(spec, text, draw, self.compiler)
        except Exception:
            self.failed = text
            raise

    def report(self) -> str:
        """Return what was seen: how many specifications, and which words of the language."""
        unused = sorted(vocabulary() - set(self.words))
        lines = [f"{self.followed} specifications followed, {sum(self.refused.values())} refused"]
        lines += [f"  refused {times} times: {reason}" for reason, times in self.refused.most_common(8)]
        for what, words in asserted_by().items():
            lines.append(f"words of {what}: " + ", ".join(f"{word} {self.words[word]}" for word in sorted(words)))
        return "\n".join([*lines, "unused: " + (", ".join(unused) or "none")])


def main() -> int:
    """Run the command; it fails where anything disagrees, or so long a run never used a word of the language."""
    given = [int(each) for each in sys.argv[1:]]
    count, number = given[0] if given else 2000, given[1] if len(given) > 1 else 0
    missing = missing_compiler()
    if missing:
        print(f"without Kaitai Struct: {missing}", file=sys.stderr)
    started = time.monotonic()
    with nullcontext() if missing else Compiler() as compiler:
        run = Run(count, number, compiler)
        try:
            run.check()
        finally:
            print(run.failed, run.report(), f"in {time.monotonic() - started:.0f} s", sep="\n", flush=True)
    unused = vocabulary() - set(run.words)
    return 1 if unused and count >= 2000 else 0


if __name__ == "__main__":
    sys.exit(main())
