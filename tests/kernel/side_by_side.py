"""Which tests one process runs in turn, when several run tests side by side: those of this folder, and what the
Makefile runs along with them."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

IN_TURN = {
    "the kernel's congestion controls and assignments": (
        "test_loader.py",
        "test_struct_ops.py",
        "test_replay.py",
        "test_leftovers.py",
        "test_settings.py::test_every_sysctl_of_tcp_is_there_as_the_file_has_it_and_no_key_is",
        "test_engine.py::test_parameters_of_a_flow_are_set_in_the_kernel",
        "test_engine.py::test_our_builds_run_where_the_kernel_has_its_own_and_are_gone_afterwards",
        "test_engine.py::test_a_file_of_ones_own_runs_in_this_kernel_and_is_gone_afterwards",
        "test_assign.py",
        "test_experiment.py",
    ),
}
"""They change, or look at, what the whole kernel has."""

ALONE = ("test_assign.py::test_nothing_is_left_after_kill_9",)
"""One of those that has no turn among them, as nothing runs beside it anyway."""

ONE_FIXTURE = (
    "test_browser.py",
    "test_dumps_of_ss.py",
    "test_paths.py",
    "test_prometheus.py",
    "test_shell.py",
    "test_trace.py",
    "test_watch.py",
)
"""The tests of each share what takes long to make."""


class SideBySide(LoadScopeScheduling):
    """Every other test goes to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        name = nodeid.rpartition("/")[2]
        if name.startswith(ALONE):
            return nodeid
        for shared, names in IN_TURN.items():
            if name.startswith(names):
                return shared
        return name.partition("::")[0] if name.startswith(ONE_FIXTURE) else nodeid
