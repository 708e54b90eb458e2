"""`python -m benchmarks.real_models`: loading, memory and speed of published models beside transformers.

Both programs read the same folder, in turn, each time in a process of its own with one thread: SmolLM2-135M,
if the models folder has it, and a model of GPT-2's smallest shape with random weights. Each process loads
the model, reads a text (prefill), and goes on with it greedily (batch 1, keys and values kept). One
uncounted try comes before every measurement. What is printed: the median of each over the rounds, and the
median of the ratios within a round, by the clock and by the processor's own time, which other work on the
machine disturbs less. Both must write the same tokens, or the run fails.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes too, before torch is imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).parent.parent
PROGRAMS = ("Loupe", "transformers")
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
}
ROWS = {  # what is printed: its unit, and whether more is better
    "import": ("s", False),
    "load": ("s", False),
    "prefill": ("tokens/s", True),
    "decode": ("tokens/s", True),
    "held": ("MB", False),
    "peak": ("MB", False),
}
Go = Callable[[], Any]


def resident() -> float:
    """MB of memory that this process has now."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True)
    return int(told.stdout) / 1024


def peak() -> float:
    """The most MB that this process had."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


def timed(work: Go) -> tuple[dict[str, float], Any]:
    """Seconds by the clock and of the processor, and what came of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}, result


def loupe(folder: Path) -> tuple[Go, Callable[[], tuple[Go, Callable[[list[int], int], Any]]]]:
    """Importing, and loading, which gives reading and writing."""

    def bring() -> None:
        import torch

        import engine.hub
        import engine.sampling

        torch.set_num_threads(1)
        assert engine.hub and engine.sampling

    def load() -> tuple[Any, Any]:
        from engine.hub import load_folder, load_model
        from engine.sampling import next_logits

        whole = (folder / "tokenizer.json").exists()
        model = load_folder(folder).model if whole else load_model(folder)

        def read(ids: list[int]) -> Any:
            return next_logits(model, ids)

        return read, loupe_writer(model)

    return bring, load


def loupe_writer(model: Any) -> Callable[[list[int], int], list[int]]:
    """Continuing a text greedily with a `Transformer`."""
    from engine.sampling import generate

    return lambda ids, n: [step.id for step in generate(model, ids, n_tokens=n, temperature=0)]


def transformers_writer(model: Any) -> Callable[[list[int], int], list[int]]:
    """The same with a model of transformers, which keeps keys and values, too."""
    import torch

    def write(ids: list[int], n: int) -> list[int]:
        row = torch.tensor([ids])
        settings = {"max_new_tokens": n, "min_new_tokens": n, "do_sample": False, "pad_token_id": 0}
        written = model.generate(row, attention_mask=torch.ones_like(row), eos_token_id=None, **settings)
        found: list[int] = written[0, len(ids) :].tolist()
        return found

    return write


def transformers(folder: Path) -> tuple[Go, Callable[[], tuple[Go, Callable[[list[int], int], Any]]]]:
    """The same with the other program."""

    def bring() -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.set_num_threads(1)
        _ = (
            AutoModelForCausalLM,
            AutoTokenizer,
        )  # named once: transformers reads a module when it is asked for

    def load() -> tuple[Any, Any]:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if (folder / "tokenizer.json").exists():
            AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()  # type: ignore[no-untyped-call]

        @torch.no_grad()
        def read(ids: list[int]) -> Any:
            return model(torch.tensor([ids]), logits_to_keep=1).logits[0, -1].numpy()

        return read, transformers_writer(model)

    return bring, load


def work(program: str, folder: Path, n_read: int, n_written: int) -> dict[str, Any]:
    """What one process measures: for each quantity its value by the clock and by the processor."""
    bring, load = {"Loupe": loupe, "transformers": transformers}[program](folder)
    found: dict[str, Any] = {"import": timed(bring)[0]}
    found["load"], (read, write) = timed(load)
    held = resident()
    ids = [100 + 37 * i % 40_000 for i in range(n_read)]
    read(ids[:32]), write(ids[:8], 4)  # the uncounted try
    seconds, _ = timed(lambda: read(ids))
    found["prefill"] = {kind: n_read / value for kind, value in seconds.items()}
    begin = ids[:32]
    one, _ = timed(lambda: write(begin, 1))
    many, written = timed(lambda: write(begin, n_written + 1))
    found["decode"] = {kind: n_written / (many[kind] - one[kind]) for kind in many}
    found["held"] = {"wall": held}
    found["peak"] = {"wall": peak()}
    return {**found, "written": written}


def measure(program: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What a fresh process of a program measures on a folder."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.real_models", "--worker", program]
    command += [str(folder), "--read", str(options.read), "--write", str(options.write)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def random_gpt2(folder: Path) -> Path:
    """A folder with GPT-2's smallest shape and random weights of 16 bits."""
    import torch
    from safetensors.torch import save_file

    width, inner, dice = 768, 3072, torch.Generator().manual_seed(0)
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (50257, width), "wpe.weight": (1024, width)}
    block = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
    block |= {"mlp.c_fc": (width, inner), "mlp.c_proj": (inner, width)}
    for i in range(12):
        shapes |= {f"h.{i}.{name}.weight": shape for name, shape in block.items()}
        shapes |= {f"h.{i}.{name}.bias": (shape[1],) for name, shape in block.items()}
    tensors = {name: 0.02 * torch.randn(shape, generator=dice) for name, shape in shapes.items()}
    for norm in ("ln_f", *(f"h.{i}.ln_{j}" for i in range(12) for j in (1, 2))):
        tensors |= {f"{norm}.weight": torch.ones(width), f"{norm}.bias": torch.zeros(width)}
    folder.mkdir()
    named = {f"transformer.{name}": tensor.half() for name, tensor in tensors.items()}
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(GPT2))
    return folder


def show(name: str, rounds: list[dict[str, dict[str, Any]]]) -> None:
    """Print the table of one model; a ratio above 1 means that Loupe is the better one."""
    print(f"\n{name}: medians of {len(rounds)} rounds, one thread")
    print(f"{'':24}{'Loupe':>10}{'transformers':>14}{'ratio':>8}")
    for what, (unit, more) in ROWS.items():
        for kind in ("wall", "cpu"):
            if kind not in rounds[0]["Loupe"][what]:
                continue
            a, b = ([one[program][what][kind] for one in rounds] for program in PROGRAMS)
            ratio = statistics.median(x / y if more else y / x for x, y in zip(a, b, strict=True))
            digits = 2 if unit == "s" else 1 if unit == "tokens/s" else 0
            label = f"{what}, {unit}" + (" of processor" if kind == "cpu" else "")
            values = f"{statistics.median(a):10.{digits}f}{statistics.median(b):14.{digits}f}"
            print(f"{label:24}{values}{ratio:8.2f}", flush=True)


def compare(name: str, folder: Path, options: argparse.Namespace) -> None:
    """Measure both programs in turn on one folder, and print the table."""
    rounds = []
    for i in range(options.rounds):
        order = PROGRAMS if i % 2 == 0 else PROGRAMS[::-1]
        rounds.append({program: measure(program, folder, options) for program in order})
        if rounds[-1]["Loupe"]["written"] != rounds[-1]["transformers"]["written"]:
            raise SystemExit(
                f"{name}: the two programs wrote different tokens; their times can't be compared."
            )
    show(name, rounds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="folder of published models (default: Loupe's own)")
    parser.add_argument("--only", choices=("smollm2", "gpt2"), help="one of the two models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--read", type=int, default=256, help="tokens of the text that is read")
    parser.add_argument("--write", type=int, default=48, help="tokens that are written")
    parser.add_argument("--worker", nargs=2, metavar=("PROGRAM", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        program, folder = options.worker
        print(json.dumps(work(program, Path(folder), options.read, options.write)))
        return
    from engine.folders import data_folder
    from engine.smollm2 import NAME

    folder = (options.models or data_folder() / "models") / NAME
    if options.only != "gpt2":
        if folder.is_dir():
            compare(NAME, folder, options)
        else:
            print(f"There is no {folder}: python -m engine.smollm2 fetches it.")
    if options.only != "smollm2":
        with tempfile.TemporaryDirectory() as home:
            compare("GPT-2 small, random weights", random_gpt2(Path(home) / "gpt2"), options)
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
