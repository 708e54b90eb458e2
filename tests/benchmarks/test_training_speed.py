"""P1: which of a program's precisions counts, and what the programs are called."""

from benchmarks.rows import Options
from benchmarks.training_speed import Program, best_of


def test_of_each_program_the_faster_precision_counts() -> None:
    speeds = {
        "nanoGPT": [20.0, 21.0, 40.0],
        "nanoGPT, bfloat16": [22.0, 22.5, 23.0],
        "Loupe": [30.0, 31.0, 32.0],
        "Loupe, bfloat16": [29.0, 30.0, 90.0],
    }
    assert best_of(speeds, "nanoGPT") == speeds["nanoGPT, bfloat16"]
    assert best_of(speeds, "Loupe") == speeds["Loupe"]


def test_a_program_is_called_by_its_precision() -> None:
    exact, rounded = (Program("Loupe", 2, Options(), rounded=rounded) for rounded in (False, True))
    assert (exact.name, rounded.name) == ("Loupe", "Loupe, bfloat16")
    assert exact.environment() == rounded.environment()
