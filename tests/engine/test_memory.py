"""The memory that a process keeps for its next step."""

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES_FOR = """
import resource, sys, torch
from engine.memory import keep_freed

def work():  # 32 MB, all of it freed at the end
    return [torch.ones(1_000_000) for _ in range(8)]

told = keep_freed() if sys.argv[1] == "keep" else False
work(), work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(told, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

FREED_BY_MANY = """
import threading
from engine.memory import give_back, keep_freed

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

def work(meet):  # 40 MB in pieces of half a megabyte, while eleven others have as much
    pieces = [bytearray(b"1") * 500_000 for _ in range(80)]
    meet.wait()

told, before = keep_freed(), resident()
for _ in range(2):
    meet = threading.Barrier(12)
    threads = [threading.Thread(target=work, args=(meet,)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
give_back()
print(told, resident() - before)
"""


def pages(how: str) -> tuple[bool, int]:
    """Whether there was a C library to tell, and how many pages the third piece of work had to ask for."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PAGES_FOR, how], cwd=ROOT, capture_output=True, check=True
    )
    kept, n = told.stdout.split()
    return kept == b"True", int(n)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told to keep memory")
def test_what_is_freed_is_taken_again() -> None:
    told, n = pages("keep")
    if not told:
        pytest.skip("this C library has no mallopt")
    whole = 32_000_000 // mmap.PAGESIZE
    assert n < whole / 20
    assert pages("as it comes")[1] > whole / 2


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told to keep memory")
def test_what_many_threads_have_freed_can_be_given_back() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FREED_BY_MANY]
    told, grown = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.split()
    if told != b"True":
        pytest.skip("this C library has no mallopt")
    assert int(grown) < 12 * 40_000_000 / 10
