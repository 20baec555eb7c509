"""The report card is what the stored results say, and each failure in it is explained."""

from fnmatch import fnmatchcase

from pgoutput_construct.conformance import all_cases
from tools.conformance.case_list import CASES_PAGE, case_list
from tools.conformance.clients import CLIENTS
from tools.conformance.findings import FINDINGS
from tools.conformance.report_card import PAGE, card, load_results, unexplained


def test_the_pages_are_up_to_date() -> None:
    """What the tool would write."""
    assert PAGE.read_text("utf-8") == card(load_results())
    assert CASES_PAGE.read_text("utf-8") == case_list()


def test_all_clients_met_all_cases() -> None:
    """At least eight clients, each with the suite as it is."""
    results = load_results()
    assert len(results) >= 8
    assert {*results} <= {entry.name for entry in CLIENTS}
    assert all([*each.cases] == [case.name for case in all_cases()] for each in results.values())


def test_each_failure_is_explained() -> None:
    """By a finding; and PostgreSQL's own subscriptions have none."""
    results = load_results()
    assert not unexplained(results)
    assert not [case for name in ("postgresql-16", "postgresql-18") for case in results[name].failed]
    names = [case.name for case in all_cases()]
    assert not [p for each in FINDINGS for p in each.cases if not any(fnmatchcase(name, p) for name in names)]
