"""Tests marked `timed` ask how soon something happens. One that fails is repeated if the machine itself was late,
measured beside it, and the run of the tests says so at its end."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

import punctual

REPEATED = "repeated"
"""The property of a report that says how often."""


def reports_of(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Of the test's only attempt, or of the last one."""
    if item.get_closest_marker("timed") is None:
        return runtestprotocol(item, log=False, nextitem=nextitem)
    for attempt in range(punctual.ATTEMPTS):
        with punctual.beside() as machine:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if attempt:
            reports[-1].user_properties.append((REPEATED, attempt))
        if not machine.is_late or not any(report.failed for report in reports):
            break
    return reports


def told(reports: list[pytest.TestReport]) -> list[str]:
    """The lines that say which tests were repeated, and how often."""
    times = {
        report.nodeid.partition("@")[0]: number
        for report in reports
        for name, number in report.user_properties
        if name == REPEATED
    }
    lines = [f"  {test}: {number} times" for test, number in times.items()]
    return ["Repeated, as this machine was late:", *lines] if lines else []
