"""What the fuzzer has found stays found."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pgoutput_construct import SpecError
from tests.spec_fuzz.cases import CASES, REFUSED, Case
from tests.spec_fuzz.framed_agreement import follow_generated_framed
from tests.spec_fuzz.fuzz import check_written, follow_generated
from tests.spec_fuzz.package import generated
from tools.language import load_text

HEAD = "protocol: fuzzed\ntitle: A case\nsource: nowhere\n"


def _parameters(cases: dict[str, Case]) -> list[object]:
    """Return the cases; those whose defect stands must fail."""
    standing = {name: pytest.mark.xfail(reason=f"{case.defect}: {case.reason}") for name, case in cases.items()}
    return [pytest.param(case, id=name, marks=[standing[name]] if case.defect else []) for name, case in cases.items()]


@pytest.mark.slow
@pytest.mark.parametrize("case", _parameters(CASES))
@pytest.mark.parametrize("examples", [10, pytest.param(30, marks=pytest.mark.long)])
def test_engines_agree_on_a_case(case: Case, examples: int) -> None:
    """Everything that a case generates agrees."""
    text = HEAD + case.text
    spec = load_text(text, "fuzzed.yaml")
    explore = follow_generated_framed if spec.framed else follow_generated

    @settings(max_examples=examples, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        explore(package, data)

    with generated(spec) as package:
        if not spec.framed:
            check_written(package, text)
        agree()


@pytest.mark.parametrize("case", _parameters(REFUSED))
def test_case_is_refused(case: Case) -> None:
    """The language says what is wrong with it."""
    with pytest.raises(SpecError, match=r"fuzzed\.yaml:"):
        load_text(HEAD + case.text, "fuzzed.yaml")
