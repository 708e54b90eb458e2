"""torch is loaded in the background; a server that is ended meanwhile ends without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import threading
from ui import resources
thread = threading.Thread(target=resources._import_engine, name="warm-up")
thread.start()
"""
LATE = "import threading, time\ntime.sleep(0.5)\nthreading._register_atexit(print)\n"  # as torch does itself


@pytest.mark.parametrize(
    ("torch", "said"), [(LATE, ""), ("raise RuntimeError('broken')", "RuntimeError: broken")]
)
def test_only_what_went_wrong_while_the_server_lives_is_told(tmp_path: Path, torch: str, said: str) -> None:
    (tmp_path / "torch.py").write_text(torch, "utf-8")
    wait = "thread.join()\n" if said else ""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + wait],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0
    assert said in done.stderr and ("Traceback" in done.stderr) == bool(said), done.stderr
