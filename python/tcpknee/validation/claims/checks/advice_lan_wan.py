"""`advice-lan-wan`: what `knee recommend` says to a host within a data centre, and to one that serves the public."""

from __future__ import annotations

from dataclasses import replace

from tcpknee.doctor.recommend import advised, by_namespace, of_role

from .check import Found, Request, fact

ARTICLE_RULE = "every-packet"
"""The article's kernel is a 4.19, which arms a pacing timer after every packet with data."""


def check(request: Request) -> Found:
    """CUBIC for the one, BBR with fq for the other, each with the numbers that decided it."""
    outcomes, ours = [], []
    for role, wanted in (("data-centre", "cubic"), ("public", "bbr")):
        found = advised([replace(path, pacing_timer=ARTICLE_RULE) for path in of_role(role)], seed=request.seed)
        [space] = by_namespace(found)
        outcomes.append(fact(f"{role}: {wanted}", space.default == wanted, f"the default is {space.default}"))
        for advice in found:
            ours.append((advice.path.name, f"{advice.algorithm}: {advice.why.rstrip('.')}"))
        if wanted == "bbr":
            named = all("fq" in advice.why for advice in found if advice.algorithm == "bbr")
            outcomes.append(fact("bbr is advised with fq", named, "the sentence names the leaf that sends"))
    return Found(outcomes, ours)
