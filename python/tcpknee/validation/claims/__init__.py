"""The published claims: what articles say of congestion control, checked here.

`catalogue` lists them. A claim has a scenario of the gallery with its name, whose `[[expect]]` say what must hold; or,
where a scenario cannot say it, a check in `checks`; or both. `judging` runs one and says what came of it.
"""
