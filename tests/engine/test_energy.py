"""Energy from made counters and a made command: sums, a counter's end, silence where nothing tells."""

import stat
import sys

import pytest

from engine import run_log
from engine.energy import Meter, packages
from tests.engine.small_runs import of_kind, spec, train_here

FULL = 262_143_328_850  # microjoules; a usual end of a counter


def zone(root, name, label, energy, full=FULL):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{label}\n")
    (folder / "max_energy_range_uj").write_text(f"{full}\n")
    (folder / "energy_uj").write_text(f"{energy}\n")
    return folder / "energy_uj"


def power(folder, *watts):
    """A command that prints the next of these at each call, and then fails."""
    script = folder / "power"
    for number, value in enumerate(watts):
        (folder / f"watts{number}").write_text(str(value))
    script.write_text(
        f"#!{sys.executable}\nimport os, sys\nnumber = 0\n"
        f"while not os.path.exists(f'{folder}/watts{{number}}'):\n"
        f"    number += 1\n    assert number < {len(watts)}\n"
        f"print(open(f'{folder}/watts{{number}}').read())\nos.remove(f'{folder}/watts{{number}}')\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [str(script)]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_packages_are_added_and_their_parts_left_out(tmp_path):
    first, second = (zone(tmp_path, f"intel-rapl:{n}", f"package-{n}", 1_000_000) for n in (0, 1))
    core = zone(tmp_path, "intel-rapl:0:0", "core", 0)
    whole = zone(tmp_path, "intel-rapl:2", "psys", 0)
    again = zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    meter = Meter(powercap=tmp_path)
    assert (meter.covers, meter.joules()) == ("processor", 0.0)
    first.write_text("3500000")
    second.write_text("2000000")
    for other in (core, whole, again):
        other.write_text("9000000")
    assert meter.joules() == pytest.approx(2.5 + 1.0)


def test_a_counter_that_passes_its_end(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 900, full=1000)
    meter = Meter(powercap=tmp_path)
    counter.write_text("50")
    assert meter.joules() == pytest.approx((100 + 50) / 1e6)
    counter.write_text("60")
    assert meter.joules() == pytest.approx(160 / 1e6)


@pytest.mark.parametrize("damage", ["missing", "words", "unreadable"])
def test_without_a_counter_there_is_no_number(tmp_path, damage):
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 5)
    second.unlink()
    if damage == "words":
        second.write_text("none")
    if damage == "unreadable":
        second.mkdir()  # reading it is an OSError for the administrator too
    assert packages(tmp_path) == []  # one of two would be half the truth
    assert Meter(powercap=tmp_path).joules() is None
    assert Meter(powercap=tmp_path / "nothing").covers == ""


def test_a_counter_that_falls_silent_ends_the_number(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = Meter(powercap=tmp_path)
    counter.unlink()
    meter.sample()
    assert meter.joules() is None and meter.covers == ""


def test_a_rest_is_not_counted(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    meter = Meter(powercap=tmp_path)
    for now, change in ((1_000_000, meter.rest), (5_000_000, meter.go_on), (7_000_000, meter.sample)):
        counter.write_text(str(now))
        change()
    assert meter.joules() == pytest.approx(1 + 2)


def test_power_of_a_gpu_is_integrated(tmp_path):
    clock = Clock()
    command = power(tmp_path, "100.0", "200.0", "300.0")
    meter = Meter("GPU-1", powercap=tmp_path / "none", nvidia=command, clock=clock)
    assert meter.covers == "GPU"
    clock.now = 1.0
    meter.sample()
    assert meter.joules() == 0.0  # not due yet: asking takes time
    clock.now = 4.0
    meter.sample()
    assert meter.joules() == pytest.approx((100 + 200) / 2 * 4)
    clock.now = 14.0
    meter.sample()
    assert meter.joules() == pytest.approx(600 + (200 + 300) / 2 * 10)
    clock.now = 20.0
    meter.sample()
    assert meter.joules() is None  # the command failed


def test_gpu_and_processor_together_or_not_at_all(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    clock = Clock()
    meter = Meter("GPU-1", powercap=tmp_path, nvidia=power(tmp_path, "50", "50"), clock=clock)
    assert meter.covers == "processor and GPU"
    counter.write_text("4000000")
    clock.now = 2.0
    meter.sample()
    assert meter.joules() == pytest.approx(4 + 100)
    silent = power(tmp_path, "[N/A]")
    assert (
        Meter("GPU-1", powercap=tmp_path, nvidia=silent).joules() is None
    )  # the processor alone would mislead
    assert Meter("GPU-1", powercap=tmp_path, nvidia=["no-such-command"]).joules() is None
    assert Meter(None, powercap=tmp_path, nvidia=["no-such-command"]).covers == "processor"


def test_pausing_takes_a_reading_of_the_gpu_at_once(tmp_path):
    clock = Clock()
    command = power(tmp_path, "100", "100", "500", "100")
    meter = Meter("GPU-1", powercap=tmp_path / "none", nvidia=command, clock=clock)
    clock.now = 1.0
    meter.rest()
    clock.now = 100.0
    meter.go_on()
    assert meter.joules() == pytest.approx(100)
    clock.now = 102.0
    meter.sample()
    assert meter.joules() == pytest.approx(100 + (500 + 100) / 2 * 2)


def test_the_command_names_the_gpu(tmp_path):
    script = tmp_path / "power"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint(7 if sys.argv[1] == '--id=GPU-ab' else 'no')\n")
    script.chmod(0o755)
    assert Meter("GPU-ab", powercap=tmp_path, nvidia=[str(script), "--id={gpu}"]).covers == "GPU"
    assert Meter("GPU-xy", powercap=tmp_path, nvidia=[str(script), "--id={gpu}"]).covers == ""


def test_a_command_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.energy.NVIDIA_SECONDS", 0.05)
    assert Meter("GPU-1", powercap=tmp_path, nvidia=["sleep", "60"]).joules() is None


def test_a_run_writes_its_energy_and_adds_to_it_when_resumed(store, tmp_path, monkeypatch):
    counter = zone(tmp_path / "cap", "intel-rapl:0", "package-0", 0)

    class Counting(Meter):
        def joules(self):
            now = int(counter.read_text()) + 1_000_000  # a joule between two readings
            counter.write_text(str(now))
            return super().joules()

    monkeypatch.setattr(run_log, "Meter", lambda gpu: Counting(gpu, powercap=tmp_path / "cap"))
    run_id = store.create(spec(steps=20), "me")
    train_here(store, run_id)
    steps = [r["joules"] for r in of_kind(store.history(run_id), "step")]
    assert steps == sorted(steps) and steps[0] == 2.0  # the evaluation at step 0 took the first reading
    last = of_kind(store.history(run_id), "eval")[-1]["joules"]
    assert store.info(run_id).joules == last == 20 + 3  # 20 steps, evaluations at 0, 10, 20
    run = store.root / run_id / "run.json"
    run.write_text(run.read_text().replace('"steps": 20', '"steps": 30'))
    train_here(store, run_id)
    at_20 = next(r["joules"] for r in of_kind(store.history(run_id), "step") if r["step"] == 20)
    assert store.info(run_id).joules == at_20 + 10 + 1


def test_where_nothing_tells_there_is_no_entry(store, monkeypatch):
    monkeypatch.setattr(run_log, "Meter", lambda gpu: Meter(gpu, powercap=store.home / "none"))
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    assert store.info(run_id).joules is None
    assert not any("joules" in r for r in store.history(run_id))
