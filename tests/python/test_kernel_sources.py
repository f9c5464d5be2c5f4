"""A congestion control of the Linux kernel as an algorithm: compiled as it is, what it is shown, what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import tcpknee
from support import knee
from tcpknee.algorithms import building, kernel_source
from tcpknee.errors import KernelUnsupported, ScenarioError, UsageError
from tcpknee.gate import candidates
from tcpknee.kernels import cache, modules
from tcpknee.runs import api, checking

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

PATH = 'duration = "4s"\n[path]\nrate = "10Mbit/s"\nrtt = "20ms"\nloss = "1%"\n[[flow]]\n'

# In the words of a kernel's file; @ stands for what a test adds to it.
HALF = """\
#define pr_fmt(fmt) "half: " fmt
#include <linux/module.h>
#include <net/tcp.h>
@head
static int beta __read_mostly = 512;
module_param(beta, int, 0644);
MODULE_PARM_DESC(beta, "window kept at a loss, of 1024");
static u32 kept;

static u32 half_ssthresh(struct sock *sk)
{
	return max_t(u32, (u64)tcp_snd_cwnd(tcp_sk(sk)) * kept / 1024, 2U);
}
@body
static struct tcp_congestion_ops half __read_mostly = {
	.ssthresh	= half_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= tcp_reno_cong_avoid,
	.owner		= THIS_MODULE,
	.name		= "half",
@ops
};

static int __init half_register(void)
{
	kept = beta;
	return tcp_register_congestion_control(&half);
}

static void __exit half_unregister(void)
{
	tcp_unregister_congestion_control(&half);
}

module_init(half_register);
module_exit(half_unregister);
MODULE_AUTHOR("nobody");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a half");
"""

# One with a model: twice the bandwidth-delay product that it measured.
TWICE = """\
#include <net/tcp.h>
#include <linux/win_minmax.h>

struct twice {
	struct minmax bw;
	u32 round, next;
};

static void twice_init(struct sock *sk)
{
	struct twice *t = inet_csk_ca(sk);

	minmax_reset(&t->bw, 0, 0);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void twice_main(struct sock *sk, @arguments)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct twice *t = inet_csk_ca(sk);
	u64 bdp;

	if (rs->interval_us <= 0 || rs->delivered < 0)
		return;
	if (!before(rs->prior_delivered, t->next)) {
		t->next = tp->delivered;
		t->round++;
	}
	minmax_running_max(&t->bw, 10, t->round, div_u64((u64)rs->delivered << 24, rs->interval_us));
	bdp = (u64)minmax_get(&t->bw) * tcp_min_rtt(tp) >> 24;
	tcp_snd_cwnd_set(tp, clamp_t(u32, 2 * bdp, 4, tp->snd_cwnd_clamp));
	bdp = (minmax_get(&t->bw) * 5ull / 4 * tp->mss_cache * USEC_PER_SEC) >> 24;
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, bdp, READ_ONCE(sk->sk_max_pacing_rate)));
}

static struct tcp_congestion_ops twice = {
	.name = "twice", .init = twice_init, .cong_control = twice_main,
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
};
static int twice_register(void) { return tcp_register_congestion_control(&twice); }
module_init(twice_register);
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def half(head: str = "", body: str = "", ops: str = "", *, file: str = "tcp_half.c") -> str:
    Path(file).write_text(HALF.replace("@head", head).replace("@body", body).replace("@ops", ops), encoding="utf-8")
    return f"./{file}"


def cell(run: tcpknee.Run, number: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of a cell, without its number and the algorithm's name."""
    drop = ("cell", "algorithm", "name")
    return {
        table: [
            {key: value for key, value in row.items() if key not in drop}
            for row in run.rows(table, cell=number).to_pylist()
        ]
        for table in ("flows", "samples", "queue", "events")
    }


def ran(algorithm: str, keys: str = "") -> dict[str, list[dict[str, Any]]]:
    return cell(tcpknee.run(f'{PATH}algorithm = "{algorithm}"\n{keys}'), 0)


@pytest.mark.parametrize("beta", [512, 900])
def test_a_file_in_the_kernels_words_gives_the_tables_of_the_same_algorithm_of_ours(beta: int) -> None:
    of_file = ran(half(), f"half.beta = {beta}\n")
    assert of_file == ran("reno", f"reno.beta = {beta / 1024}\n")
    assert of_file["flows"][0]["retransmit_pct"] > 0


def test_connections_of_one_run_have_each_their_own_parameters_of_the_module() -> None:
    def both(algorithm: str, name: str, scale: int) -> dict[str, list[dict[str, Any]]]:
        flows = (
            f'[[flow]]\nalgorithm = "{algorithm}"\n{name}.beta = {beta / scale}\nstart = "{start}ms"\n'
            for beta, start in ((300, 0), (950, 7))
        )
        return cell(tcpknee.run(PATH.removesuffix("[[flow]]\n") + "".join(flows).replace(".0\n", "\n")), 0)

    assert both(half(), "half", 1) == both("reno", "reno", 1024)


@pytest.mark.parametrize(
    "arguments", ["const struct rate_sample *rs", "u32 ack, int flag, const struct rate_sample *rs"]
)
def test_cong_control_has_the_arguments_that_its_kernel_gave_it(arguments: str) -> None:
    Path("tcp_twice.c").write_text(TWICE.replace("@arguments", arguments), encoding="utf-8")
    flow = ran("./tcp_twice.c")["flows"][0]
    assert 9e6 < flow["goodput_bits_per_sec"] < 10e6


def test_pkts_acked_has_the_arguments_that_its_kernel_gave_it() -> None:
    new = "static void acked(struct sock *sk, const struct ack_sample *s) { credit(sk, s->pkts_acked, s->rtt_us); }"
    old = "static void acked(struct sock *sk, u32 n, s32 rtt_us) { credit(sk, n, rtt_us); }"
    credit = "static void credit(struct sock *sk, u32 n, s32 us) { tcp_sk(sk)->snd_cwnd_cnt += n * us / 8000; }\n"
    tables = [ran(half("", credit + body, ".pkts_acked = acked,")) for body in (new, old)]
    assert tables[0] == tables[1]
    assert tables[0] != ran("reno")


@pytest.mark.parametrize(
    ("since", "ops"), [("7.1", ".cwnd_event_tx_start = start,"), ("before", ".cwnd_event = event,")]
)
def test_the_start_of_sending_is_told_by_an_event_or_by_the_op_of_7_1(since: str, ops: str) -> None:
    body = (
        "static void start(struct sock *sk) { tcp_sk(sk)->snd_ssthresh = 5; }\n"
        "static void event(struct sock *sk, enum tcp_ca_event e) { if (e == CA_EVENT_TX_START) start(sk); }"
    )
    assert ran(half("", body, ops))["samples"][-1]["snd_ssthresh"] < 100, since


def test_an_algorithm_that_enters_cwr_is_reduced_by_the_stack() -> None:
    body = (
        "struct mine { u32 acks; };\n"
        "static void grow(struct sock *sk, u32 ack, u32 acked)\n{\n\tstruct mine *m = inet_csk_ca(sk);\n\n"
        "\tif (++m->acks == 100)\n\t\ttcp_enter_cwr(sk);\n\telse\n\t\ttcp_reno_cong_avoid(sk, ack, acked);\n}"
    )
    path = half("", body, "").replace("./", "")
    text = Path(path).read_text(encoding="utf-8").replace("= tcp_reno_cong_avoid", "= grow")
    Path(path).write_text(text, encoding="utf-8")
    run = tcpknee.run(PATH.replace('loss = "1%"\n', 'buffer = "100bdp"\n') + f'algorithm = "./{path}"\n')
    states = [row["ca_state"] for row in cell(run, 0)["samples"]]
    assert 2 in states
    assert 3 not in states


def test_files_that_it_includes_and_calls_are_compiled_with_it() -> None:
    Path("tcp_part.h").write_text("u32 part(u32 of);\n", encoding="utf-8")
    Path("tcp_part.c").write_text(
        '#include <net/tcp.h>\n#include "tcp_part.h"\nu32 part(u32 of) { return of * 900 / 1024; }\n', encoding="utf-8"
    )
    body = "static u32 by_part(struct sock *sk) { return max(part(tcp_sk(sk)->snd_cwnd), 2u); }"
    path = half('#include "tcp_part.h"', body, "").removeprefix("./")
    text = Path(path).read_text(encoding="utf-8").replace("= half_ssthresh", "= by_part")
    Path(path).write_text(text, encoding="utf-8")
    assert ran(f"./{path}") == ran("reno", f"reno.beta = {900 / 1024}\n")
    assert set(building.build(f"./{path}").sources) == {"tcp_half.c", "tcp_part.h", "tcp_part.c"}


def test_a_length_of_hz_is_compiled_for_one() -> None:
    assert ran(half("static u32 ring[HZ / 10];", "static int of_ring(void) { return ring[0]; }")) == ran("reno")


def test_memory_and_chance_of_a_connection_are_its_own_and_repeatable() -> None:
    body = (
        "struct mine { u32 *drawn; };\n"
        "static void begin(struct sock *sk)\n{\n\tstruct mine *m = inet_csk_ca(sk);\n\n"
        "\tm->drawn = kcalloc(40, sizeof(u32), GFP_KERNEL);\n\tif (m->drawn)\n"
        "\t\tget_random_bytes(m->drawn, 40 * sizeof(u32));\n"
        "\ttcp_sk(sk)->snd_ssthresh = m->drawn && m->drawn[0] != m->drawn[39] ? 8 + m->drawn[7] % 64 : 2;\n}\n"
        "static void end(struct sock *sk) { struct mine *m = inet_csk_ca(sk); kfree(m->drawn); }"
    )
    path = half("", body, ".init = begin,\n.release = end,")
    thresholds = []
    for seed in (1, 2, 1):
        run = tcpknee.run(f'seed = {seed}\n{PATH}algorithm = "{path}"\n')
        thresholds.append(cell(run, 0)["samples"][1]["snd_ssthresh"])
    assert thresholds[0] == thresholds[2]
    assert len(set(thresholds)) == 2
    assert min(thresholds) >= 8


def test_a_state_larger_than_linux_has_room_for_is_said() -> None:
    body = (
        "struct mine { u64 big[20]; };\n"
        "static void begin(struct sock *sk) { struct mine *m = inet_csk_ca(sk); m->big[19] = 1; }"
    )
    done = knee("compare", half("", body, ".init = begin,"), "--alone", "--duration", "1s", cwd=Path.cwd())
    assert done.code == 0, done.err
    assert "./tcp_half.c keeps more of a connection than the 104 bytes that Linux gives" in done.err


def test_what_it_prints_is_told_with_the_time_and_ends() -> None:
    body = 'static void begin(struct sock *sk) { u32 i; for (i = 0; i < 30; i++) pr_info("line %u\\n", i); }'
    done = knee("run", scenario(half("", body, ".init = begin,")), "--workers", "1", cwd=Path.cwd())
    assert done.code == 0, done.err
    told = [line for line in done.err.splitlines() if line.startswith("half: ")]
    assert "half: line 0" in told[0]
    assert "line 19" in told[19]
    assert told[20:] == ["half: prints more, which is not shown"]


def test_a_check_asks_of_its_private_area_and_not_of_the_adapters_state() -> None:
    done = knee("check", half(), "--json", cwd=Path.cwd())
    found = {one["asked"]: one["ok"] for one in json.loads(done.out)["findings"]}
    assert found["compiles"] and found["fits 104 bytes"] and found["carries data"]
    assert found["bears any call"] is None
    assert found["builds in guests"] is None, "no kernel was added"


def test_a_check_asks_each_kernel_that_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(kernel: str, built: building.Built) -> None:
        if kernel == "6.12":
            raise KernelUnsupported(f"{built.path}: the guest kernel 6.12 does not let modules use absent().")

    Named = namedtuple("Named", "name")
    built = building.build(half())
    for names, ok, said in (
        (("7.2",), True, "of Linux 7.2"),
        (("6.12", "7.2"), True, "of Linux 7.2; ./tcp_half.c: the guest kernel 6.12 does not let modules use absent"),
        (("6.12",), False, "does not let modules use absent"),
    ):
        monkeypatch.setattr(cache, "kernels", lambda names=names: map(Named, names))
        monkeypatch.setattr(modules, "can_build", lambda kernel: True)
        monkeypatch.setattr(modules, "module", lambda kernel, built: module(kernel.name, built))
        found = checking._in_guests(built)
        assert found.ok is ok and said in found.words


def scenario(algorithm: str) -> str:
    Path("s.toml").write_text(f'{PATH}algorithm = "{algorithm}"\n', encoding="utf-8")
    return "s.toml"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("void f(struct sock *sk) { dev_get_stats(0, 0); }", "uses dev_get_stats()"),
        ("u32 f(struct sock *sk) { return tcp_sk(sk)->segs_out; }", "uses tcp_sock.segs_out"),
        (
            "void f(struct sock *sk) { tcp_sk(sk)->delivered = 1; }",
            "sets delivered, which an algorithm cannot set here",
        ),
        ("u32 f(void) { return SOCK_ZEROCOPY; }", "uses SOCK_ZEROCOPY"),
        ("void f(struct net_device *d) { d->mtu = 1; }", "uses struct net_device"),
        ("u32 f(struct sock *sk) { double x = beta; return x * 1.5; }", "uses floating point"),
        ("int absent(int x);\nint f(void) { return absent(1); }", "uses absent()"),
    ],
)
def test_what_the_simulator_does_not_have_is_refused_by_name_and_line(body: str, said: str) -> None:
    path = half("", body)
    with pytest.raises(UsageError) as refused:
        building.build(path)
    line = HALF.split("@body", maxsplit=1)[0].count("\n") + 1 + body.count("\n")
    assert str(refused.value).splitlines()[0] == (
        "./tcp_half.c: is of the Linux kernel, and uses what the simulator does not have:"
    )
    assert f"./tcp_half.c:{line}: {said}" in str(refused.value)


def test_what_guests_alone_can_run_has_its_name_and_its_parameters_and_is_refused_elsewhere() -> None:
    path = half("static bool fast;\nmodule_param_named(quick, fast, bool, 0644);", "u32 f(void) { return absent(1); }")
    text = f'{PATH}algorithm = "{path}"\nhalf.beta = 300\nhalf.quick = true\n'
    scenario = api.parse(text, "<text>", in_guests_alone=True)
    assert [flow["algorithm"] for flow in scenario.cells[0]["flows"]] == ["half"]
    with pytest.raises(ScenarioError, match=r"half\.gain"):
        api.parse(f"{text}half.gain = 1\n", "<text>", in_guests_alone=True)
    for otherwise in ({}, {"engine": "kernel"}):
        with pytest.raises(UsageError, match=r"uses absent\(\)\nA guest's kernel may have it: --engine guest"):
            tcpknee.run(text, **otherwise)
    nameless = Path(path).read_text(encoding="utf-8").replace('"half",', "HALF_NAME,")
    Path(path).write_text(f'#define HALF_NAME "half"\n{nameless}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"uses absent\(\)$"):
        api.parse(text, "<text>", in_guests_alone=True)


def test_a_file_for_guests_alone_goes_through_gate_diff_and_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """To where a guest is asked for."""
    path = half("", "u32 f(void) { return absent(1); }")
    for alone in (True, False):
        with nullcontext() if alone else pytest.raises(UsageError, match=r"uses absent\(\)"):
            new, _ = candidates.of("knee gate", path, "cubic", in_guests_alone=alone)
    assert new.label == "half"
    words = ["diff", scenario(path), "--kernel", "6.1,6.12", "--engine", "guest"]
    assert 'got "6.1"; none was built yet' in knee(*words, cwd=Path.cwd()).err
    assert knee("gate", path, "--engine", "guest", cwd=Path.cwd()).err.count("kernel: got none; expected one of") == 1
    for ok, said in ((True, "of Linux 6.12"), (False, "it does not build")):
        in_guests = checking.Finding("builds in guests", ok, said)
        monkeypatch.setattr(checking, "_in_guests", lambda built, found=in_guests: found)
        found = {one.asked: one for one in checking.check(path, 1)}
        assert not found["compiles"].ok and found["compiles"].matters is not ok
        assert found["builds in guests"].words == said and found["carries data"].ok is None


def test_an_error_of_the_language_is_told_by_its_line() -> None:
    with pytest.raises(UsageError, match=r"\./tcp_half\.c:\d+: expected .*';'"):
        building.build(half("", "static int f(void) { return 1 }"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("tcp_register_congestion_control(&half)", "0"), "registers no congestion control"),
        ((".undo_cwnd	= tcp_reno_undo_cwnd,", ""), "undo_cwnd"),
    ],
)
def test_a_file_without_what_linux_asks_for_is_refused(change: tuple[str, str], said: str) -> None:
    path = Path(half())
    text = path.read_text(encoding="utf-8")
    assert change[0] in text
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        building.build("./tcp_half.c")


def test_a_library_that_is_missing_is_named() -> None:
    Path("tcp_part.h").write_text("u32 tcp_part_of(u32 of);\n", encoding="utf-8")
    path = half('#include "tcp_part.h"', "u32 f(struct sock *sk) { return tcp_part_of(1); }")
    with pytest.raises(UsageError, match=r"tcp_part_of\(\) is of tcp_part\.c: put that file beside it"):
        building.build(path)


def test_a_source_of_the_kernel_includes_nothing_of_another_folder(tmp_path: Path) -> None:
    Path("own").mkdir()
    Path("secret.h").write_text("hunter2;\n", encoding="utf-8")
    for line, said in (
        (f"#include <{tmp_path}/secret.h>", r"includes /.*secret\.h, which lies outside of its folder"),
        (f"#define X <{tmp_path}/secret.h>\n#include X", r'got "#include"; expected C alone'),
    ):
        path = half(line, file="own/tcp_half.c")
        with pytest.raises(UsageError, match=said):
            building.build(path)


SAME: Mapping[str, str] = {
    "bic": "bic",
    "dctcp": "dctcp",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "lp": "lp",
    "nv": "nv",
    "scalable": "scalable",
    "vegas": "vegas",
    "veno": "veno",
    "westwood": "westwood",
    "yeah": "yeah",
}


@pytest.mark.skipif(
    "KERNEL_SOURCES" not in os.environ, reason="KERNEL_SOURCES names no folder with tcp_cubic.c of Linux"
)
@pytest.mark.parametrize("name", SAME)
def test_linux_own_file_gives_the_tables_of_ours(name: str) -> None:
    file = Path(os.environ["KERNEL_SOURCES"]) / f"tcp_{name}.c"
    assert ran(str(file)) == ran(SAME[name])


def test_a_write_beyond_its_private_area_is_the_algorithms_and_no_defect_of_ours() -> None:
    body = "static void begin(struct sock *sk) { u64 *mine = inet_csk_ca(sk); mine[KNEE_PRIVATE_BYTES / 8] = 1; }"
    done = knee("run", scenario(half("", body, ".init = begin,")), "--workers", "1", cwd=Path.cwd())
    assert "writes beyond the" in done.err
    assert "half does what C leaves undefined (SIGILL) in init" in done.err
    assert "defect" not in done.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("while (*(volatile int *)&beta) ;", "does not end"),
        ("*(volatile int *)8 = 1;", "uses memory that is not its own"),
        ('pr_info("begins\\n"); __builtin_trap();', "does what C leaves undefined"),
    ],
)
def test_a_module_init_that_ends_badly_is_said_and_hurts_nobody(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_source, "_LOAD_SECONDS", 1)
    file = half()
    Path(file).write_text(Path(file).read_text().replace("kept = beta;", f"kept = beta; {line}"))
    with pytest.raises(UsageError, match=rf"its module_init\(\) {said}"):
        building.build(file)
