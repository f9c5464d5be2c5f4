"""The harness of docs/against.md builds and runs, on ours itself and on small files in the kernel's words."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def against(algorithm: str, out: Path, *words: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
    first = file or ROOT / "cc" / f"{algorithm if algorithm != 'nothing' else 'reno'}.c"
    command = [sys.executable, "-m", "tcpknee", "against", first, algorithm, "--random", "0", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "XDG_CACHE_HOME": str(out / "cache")}
    )


# One with a window, one with a model, and the one that also hears of each lost packet.
@pytest.mark.parametrize("algorithm", ["reno", "dctcp", "bbr1", "bbr3"])
def test_an_algorithm_is_equal_to_itself(algorithm: str, tmp_path: Path) -> None:
    done = against(algorithm, tmp_path, "--class", "loss", "--random", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    shares = re.findall(r"(\d+) +(\d+\.\d+) %", done.stdout)
    assert len(shares) > 8
    assert {share for _, share in shares} == {"100.0000"}
    assert all(int(acks) > 500 for acks, _ in shares)


# In the words of a kernel's file: reno, whose window is a segment larger from the ACK of the parameter on.
FLAWED = """
#include <net/tcp.h>
static unsigned int flaw;
module_param(flaw, uint, 0644);
struct state { u32 acks; };
static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct state *s = inet_csk_ca(sk);

	tcp_reno_cong_avoid(sk, ack, acked);
	if (++s->acks == flaw)
		tcp_sk(sk)->snd_cwnd++;
}
static struct tcp_congestion_ops ops = {
	.name = "flawed", .ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = cong_avoid,
};
static int start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
"""


def test_a_file_in_the_kernels_words_is_equal_to_ours_that_does_the_same(tmp_path: Path) -> None:
    file = tmp_path / "tcp_flawed.c"
    file.write_text(FLAWED, encoding="utf-8")
    done = against("reno", tmp_path / "out", "--random", "3", file=file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_segment_more_is_found_with_its_ack_and_makes_the_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "tcp_flawed.c"
    file.write_text(FLAWED, encoding="utf-8")
    done = against("reno", tmp_path / "out", "--class", "1 BDP", "--first", "flaw=300", file=file)
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.search(r'difference of snd_cwnd: "1 BDP", seed 1, ACK (\d+): first (\d+), second (\d+)', done.stdout)
    assert told
    ack, kernel, ours = map(int, told.groups())
    assert ack >= 300
    assert kernel == ours + 1


# In the words of a kernel's file: reno, which enters CWR by itself at its 300th ACK. It stops the program when that
# reduction does not end with its window at the threshold, or is not over 300 ACKs later.
ENTERS_CWR = """
#include <net/tcp.h>
struct state { u32 acks, ends; };
static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct state *s = inet_csk_ca(sk);

	if (++s->acks == 300)
		tcp_enter_cwr(sk);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
	if (s->acks == 600 && !s->ends)
		BUG();
}
static void cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct state *s = inet_csk_ca(sk);

	if (event == CA_EVENT_COMPLETE_CWR && !s->ends++ && tcp_sk(sk)->snd_cwnd != tcp_sk(sk)->snd_ssthresh)
		BUG();
}
static struct tcp_congestion_ops ops = {
	.name = "enters_cwr", .ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
	.cong_avoid = cong_avoid, .cwnd_event = cwnd_event,
};
static int start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
"""


def test_a_kernels_algorithm_that_enters_cwr_is_reduced_in_proportion_and_told_of_the_end(tmp_path: Path) -> None:
    file = tmp_path / "tcp_enters_cwr.c"
    file.write_text(ENTERS_CWR, encoding="utf-8")
    done = against("reno", tmp_path / "out", "--class", "no loss, 100 Mbit/s", file=file)
    assert done.returncode == 1, done.stdout + done.stderr
    differences = dict(
        re.findall(r"difference of (\w+): .*, ACK (\d+: first \d+, second \d+)", done.stdout),
    )
    entered, threshold, _ = map(int, re.findall(r"\d+", differences["snd_ssthresh"]))
    cut, cwnd, ours = map(int, re.findall(r"\d+", differences["snd_cwnd"]))
    assert entered == 300
    # It does not grow at that ACK, and what it loses it loses a segment at every second one.
    assert cut == 300
    assert ours - cwnd == 1
    assert threshold == cwnd // 2


# As of Linux 7.1: the start of sending is an op of its own, and no event any more. With other words that are new since.
STARTS = """
#include <net/tcp.h>
static void begin(struct sock *sk)
{
	u32 *one = kzalloc_objs(one[0], 1, GFP_NOWAIT);

	tcp_sk(sk)->snd_ssthresh = tcp_ecn_mode_any(tcp_sk(sk)) ? 6 : 5;
	kfree(one);
}
static void cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		BUG();
}
static struct tcp_congestion_ops ops = {
	.name = "starts", .ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
	.cong_avoid = tcp_reno_cong_avoid, .cwnd_event = cwnd_event, .cwnd_event_tx_start = begin,
};
static int start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
"""


def test_a_start_of_sending_goes_to_the_op_that_kernels_since_7_1_have_for_it(tmp_path: Path) -> None:
    file = tmp_path / "tcp_starts.c"
    file.write_text(STARTS, encoding="utf-8")
    done = against("reno", tmp_path / "out", "--class", "no loss, 100 Mbit/s", file=file)
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.search(r"difference of snd_ssthresh: .*, ACK \d+: first (\d+), second (\d+)", done.stdout)
    assert told and told.group(1) == "5" and int(told.group(2)) > 1_000_000


# In the words of a kernel's file: reno, whose threshold is 7 from the 300th time on that it is told of an ACK.
IS_TOLD = """
#include <net/tcp.h>
struct state { u32 acks; };
static void acked(struct sock *sk, const struct ack_sample *sample)
{
	struct state *s = inet_csk_ca(sk);

	if (++s->acks >= 300)
		tcp_sk(sk)->snd_ssthresh = 7;
}
static struct tcp_congestion_ops ops = {
	.name = "is_told", .ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
	.cong_avoid = tcp_reno_cong_avoid, .pkts_acked = acked,
};
static int start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
"""


def test_an_op_that_only_the_second_has_is_played_to_it(tmp_path: Path) -> None:
    file = tmp_path / "tcp_is_told.c"
    file.write_text(IS_TOLD, encoding="utf-8")
    done = against(str(file), tmp_path / "out", "--class", "no loss, 100 Mbit/s", file=ROOT / "cc" / "reno.c")
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.search(r"difference of snd_ssthresh: .*, ACK 299: first (\d+), second (\d+)", done.stdout)
    assert told and int(told.group(1)) > 1_000_000 and told.group(2) == "7"


@pytest.mark.parametrize(
    ("algorithm", "words", "said"),
    [
        (
            "reno",
            ("--class", "no such class"),
            'got "no such class", which is in no class\'s name; expected a part of one of "no loss',
        ),
        ("reno", ("--second", "gain=3"), "reno has no parameter for gain=3; expected NAME=VALUE, of beta"),
        ("reno", ("--first", "gain=3"), "reno has no parameter for gain=3; expected NAME=VALUE, of beta"),
        ("cubic", ("--first", "beta=5000"), "expected a whole number from 512 to 1000"),
        (
            "cubic",
            ("--second", "beta=0.7"),
            'got "0.7"; expected a whole number from 512 to 1000. beta is counted in 1/1024: 512 for 0.5.',
        ),
        ("nothing", (), 'got "nothing"; expected an algorithm of `knee list algorithms`, or a path'),
    ],
)
def test_what_cannot_be_compared_is_refused(algorithm: str, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = against(algorithm, tmp_path, *words)
    assert done.returncode != 0
    assert said in done.stderr


def test_only_is_one_scenario_and_a_class_draws_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tcpknee", "against", "reno", "reno"]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    only, of_class = (
        subprocess.run([*command, *words], capture_output=True, text=True, check=True, env=env).stdout
        for words in (("--only", "3"), ("--class", "short RTT"))
    )
    assert "0 of 1 random scenarios" in only and only.count("100.0000 %") == 2
    assert "random" not in of_class and of_class.count("100.0000 %") == 3


# In the words of a kernel's file: it fails at its 40th ACK.
FAILS = """
#include <net/tcp.h>
static u32 acks, zero, sum;
static u32 deep(u32 n)
{
	volatile u32 much[64] = { n };

	return zero == 0 ? deep(n + 1) + much[0] : 0;
}
static void cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
	if (++acks == 40)
		@
}
static struct tcp_congestion_ops ops = {
	.name = "fails", .ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = cong_avoid,
};
static int start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
"""


@pytest.mark.slow("what does not end is ended after five seconds of processor time")
@pytest.mark.parametrize(
    ("statement", "did"),
    [
        ("*(volatile u32 *)8 = 1;", "uses memory that is not its own (SIGSEGV)"),
        ("sum += deep(1);", "uses memory that is not its own (SIGSEGV)"),
        ("BUG();", "does what C leaves undefined"),
        ("for (;;) *(volatile u32 *)&zero = 0;", "does not end"),
    ],
)
def test_a_file_that_crashes_or_loops_is_named_with_the_op_and_the_class(
    statement: str, did: str, tmp_path: Path
) -> None:
    file = tmp_path / "tcp_fails.c"
    file.write_text(FAILS.replace("@", statement), encoding="utf-8")
    done = against("reno", tmp_path / "out", "--class", "1 BDP", file=file)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert f"{file} {did}" in said and 'in cong_avoid, in the class "1 BDP", seed 1' in said
    assert f"`knee check {file}` names the line" in said and "Traceback" not in said


def test_below_a_difference_stands_the_op_with_what_it_was_shown_and_both_decisions(tmp_path: Path) -> None:
    file = tmp_path / "tcp_flawed.c"
    file.write_text(FLAWED, encoding="utf-8")
    done = against("reno", tmp_path / "out", "--class", "1 BDP", "--first", "flaw=300", file=file)
    told = re.search(
        r"in cong_avoid\(acked (\d+)\)\n.*\n"
        r"    first  snd_cwnd (\d+) -> (\d+), .*\n    second snd_cwnd (\d+)(?: -> (\d+))?,",
        done.stdout,
    )
    assert told, done.stdout
    acked, before, first, also_before, second = (int(number or told.group(4)) for number in told.groups())
    assert acked >= 1 and before == also_before and first == second + 1
    # A reduction is the stack's; its threshold is not.
    done = against("cubic", tmp_path / "out", "--class", "marks, long RTT", file=ROOT / "cc" / "reno.c")
    threshold, window = (
        re.search(rf"difference of {kind}: (?:.*\n){{3}}    (in [^\n(]*)", done.stdout)
        for kind in ("snd_ssthresh", "snd_cwnd")
    )
    assert threshold and threshold.group(1) == "in ssthresh"
    assert window and window.group(1) == "in no op: what the stack made of the windows"
    assert "delivered 0 (CE 0)" not in done.stdout


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = against("reno", tmp_path, file=tmp_path / "tcp_reno.c")
    assert done.returncode != 0
    assert f"{tmp_path / 'tcp_reno.c'}: cannot be read: there is no such file" in done.stderr
