"""The kernel's own algorithms, recorded on live flows and replayed through cc/ (recording.py, docs/replay.md).

The recordings that come with the tests are replayed by crates/validation/src/replay/tests.rs, without root. Here new
ones are made, so that the kernel of this machine is compared, and with it how we read its fields.
"""

import subprocess
from pathlib import Path

import pytest

import probes
from building import make_bpf, run
from recording import CWND_SHARE, Course, Replayed, recorded, replay_program, run_course

COURSES = {
    # A queue of 42 ms in which the window grows for seconds between its losses.
    "deep": Course(50_000_000, 256 * 1024, seconds=6),
    # Losses of every kind, several flows told apart, idle restarts.
    "lossy": Course(20_000_000, 32 * 1024, drops_per_mille=10, pattern="bursts", flows=4, seconds=5),
}
KERNELS_OWN = {"reno": "tcp_reno_cong_avoid", "cubic": "cubictcp_cong_avoid", "bbr1": "bbr_main"}


@pytest.fixture(scope="session")
def record_objects(kernel: None, bpf_objects: Path) -> Path:
    return make_bpf("bpf-record")


@pytest.fixture(scope="session")
def program() -> Path:
    probes.need_programs("cargo", "nft", "ethtool")
    return replay_program()


def record_and_replay(program: Path, algorithm: str, course: Course, objects: Path, into: Path) -> Replayed:
    probes.need_function(KERNELS_OWN[algorithm])
    with recorded(program, algorithm, objects, into) as counts:
        run_course(course, f"knee_rec_{algorithm}")
    print(counts)
    found = Replayed()
    found.add(run(program, "compare", into))
    print(f"{algorithm}: {found}")
    return found


@pytest.mark.slow("flows of five seconds, and before the first one the program that replays them is built")
@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("algorithm", KERNELS_OWN)
def test_an_algorithm_does_what_the_kernels_own_did(
    record_objects: Path, program: Path, algorithm: str, course: str, tmp_path: Path
) -> None:
    found = record_and_replay(program, algorithm, COURSES[course], record_objects, tmp_path / "flow.rec")
    assert found.acks > 1000
    # A kernel now and then skips a program, and a connection whose init() it skipped has no record.
    assert 2 * found.flows >= COURSES[course].flows
    # Of one course alone this share says little: a root off by 0.15 % may cost all ACKs of an update of the slope. The
    # replay itself puts to the root only what the kernel's own K explains, and only where that K is a possible root.
    by_cube_root = found.differing("cube root", "snd_cwnd")
    assert found.share("snd_cwnd") + by_cube_root / found.acks >= CWND_SHARE[algorithm]
    assert found.differing("unexplained") == 0


def test_a_recorder_that_is_killed_leaves_its_name_free(record_objects: Path, program: Path, tmp_path: Path) -> None:
    command = (program, "record", "reno", record_objects / "record_reno.bpf.o", tmp_path / "none.rec")
    recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == "ready knee_rec_reno\n"
    recorder.kill()
    recorder.wait()
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    assert "knee_rec_reno" not in available


def test_what_is_not_a_recording_is_refused_by_name(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.rec"
    other.write_text("PAR1")
    done = subprocess.run([program, "compare", other], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "other.rec" in done.stderr
    assert "tcpknee-recording 3" in done.stderr
