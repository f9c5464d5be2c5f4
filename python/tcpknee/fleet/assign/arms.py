"""Arms of an experiment, from texts such as `bbr1=50%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tcpknee import algorithms
from tcpknee.algorithms import naming
from tcpknee.errors import UsageError

ARMS_MAX = 8
"""As many as `bpf/assign.h` has room for."""

_FORM = (
    'ALGORITHM, ALGORITHM=SHARE or NAME:ALGORITHM=SHARE, such as "bbr1=50%", "new:bbr3=10%" or, of a file of your own, '
    '"./mine.c=50%"'
)
_ROUNDING_PCT = 1e-6


@dataclass(frozen=True)
class Arm:
    """What some of the connections get."""

    name: str
    """What the log calls it; the algorithm, unless said otherwise."""
    algorithm: str
    share_pct: float


def parse(texts: Sequence[str]) -> tuple[Arm, ...]:
    """The arms in their order; the first is the treated one of a ramp or a pair of links.

    Arms without a share divide what the others leave. An algorithm called by Linux's name gets ours, which is noted;
    that of a path is compiled, and known to the loader. Raises UsageError.
    """
    parts = [_parts(text) for text in texts]
    files = _of_files([word for _, word, _ in parts if naming.is_path(word)])
    given = []
    for name, word, share in parts:
        algorithm = files[word] if word in files else algorithms.ours(word)
        given.append((name or algorithm, algorithm, share, algorithm if word in files else word))
    if len(given) < 2 or len(given) > ARMS_MAX:
        raise UsageError(f"ARMS: got {len(given)}; expected 2 to {ARMS_MAX} of them, each as {_FORM}.")
    names = [name for name, *_ in given]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f'ARMS: got "{twice}" twice; expected a name for each. Two arms of one algorithm are called by names: '
            f"one:{twice}=50% other:{twice}=50%."
        )
    told = sum(share for _, _, share, _ in given if share is not None)
    open_ = sum(share is None for _, _, share, _ in given)
    if told > 100 + _ROUNDING_PCT or (not open_ and told < 100 - _ROUNDING_PCT):
        raise UsageError(f"ARMS: got shares of {told:g}% together; expected 100%, or an arm without a share.")
    if open_ and told > 100 - _ROUNDING_PCT:
        raise UsageError("ARMS: got shares of 100% and an arm without one; expected something left for it.")
    rest = (100 - told) / open_ if open_ else 0.0
    algorithms.note({linux: ours for _, ours, _, linux in given if ours != linux})
    return tuple(Arm(name, algorithm, rest if share is None else share) for name, algorithm, share, _ in given)


def percent(option: str, text: str) -> float:
    """`50%` or `0.5%`. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", text.strip())
    if not found or float(found[1]) > 100:
        raise UsageError(f'{option}: got "{text}"; expected a share from 0% to 100%, such as "50%".')
    return float(found[1])


def _of_files(paths: Sequence[str]) -> dict[str, str]:
    """The names of the algorithms of files, by their paths."""
    from tcpknee.algorithms import for_kernel

    return dict(zip(paths, for_kernel.names("ARMS", paths), strict=True)) if paths else {}


def _parts(text: str) -> tuple[str | None, str, float | None]:
    """Name, algorithm or path, and share, where the text has them."""
    found = re.fullmatch(r"(?:([A-Za-z0-9_.-]{1,32}):)?([a-z0-9_]{1,15}|[^=:]*/[^=:]*|[^=:]+\.c)(?:=(.+))?", text)
    if not found:
        raise UsageError(f'ARMS: got "{text}"; expected {_FORM}.')
    return found[1], found[2], percent("ARMS", found[3]) if found[3] is not None else None
