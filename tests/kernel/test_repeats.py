"""A test is repeated where the machine was late, and nowhere else; what is repeated is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import punctual
import repeats

LATE_US = 2 * punctual.LATE_US


class Attempts:
    """What each attempt of a test comes to, and how late the machine was meanwhile."""

    def __init__(self, patch: pytest.MonkeyPatch, *passed: bool, late_us: float, worst_us: float = 0) -> None:
        self.passed, self.late_us, self.worst_us, self.made = passed, late_us, worst_us, 0
        patch.setattr(repeats, "runtestprotocol", self.attempt)
        patch.setattr(punctual, "beside", self.beside)

    def attempt(self, item: object, **_: object) -> list[Any]:
        self.made += 1
        return [SimpleNamespace(nodeid="test_it@test_it.py", failed=not self.passed[self.made - 1], user_properties=[])]

    @contextmanager
    def beside(self) -> Iterator[punctual.Punctuality]:
        found = punctual.Punctuality()
        found.late_us, found.worst_us = self.late_us, self.worst_us
        yield found


def a_test(timed: bool = True) -> Any:
    return SimpleNamespace(get_closest_marker=lambda name: (name == "timed" and timed) or None)


def test_what_fails_on_a_late_machine_is_repeated_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for late in ({"late_us": LATE_US}, {"late_us": 0, "worst_us": 2 * punctual.STALL_US}):
        attempts = Attempts(monkeypatch, False, False, True, **late)
        found = repeats.reports_of(a_test(), None)
        assert (attempts.made, [report.failed for report in found]) == (3, [False])
        assert repeats.told(found) == ["Repeated, as this machine was late:", "  test_it: 2 times"]


def test_what_fails_each_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, False, False, False, late_us=LATE_US)
    assert [report.failed for report in repeats.reports_of(a_test(), None)] == [True]
    assert attempts.made == punctual.ATTEMPTS


@pytest.mark.parametrize(
    ("passed", "timed", "late_us"), [(True, True, LATE_US), (False, False, LATE_US), (False, True, 0)]
)
def test_what_passes_or_has_no_excuse_has_one_attempt(
    monkeypatch: pytest.MonkeyPatch, passed: bool, timed: bool, late_us: float
) -> None:
    attempts = Attempts(monkeypatch, passed, late_us=late_us)
    found = repeats.reports_of(a_test(timed=timed), None)
    assert (attempts.made, [report.failed for report in found]) == (1, [not passed])
    assert repeats.told(found) == []
