"""Whoever puts the written numbers into a calculator gets the written result."""

import random
import re

from ui import worked, worked_models


def test_memory_follows_from_its_own_numbers() -> None:
    rng = random.Random(4)
    for n in [1, 924_416, 134_515_008, *(rng.randrange(1, 4_000_000_000) for _ in range(200))]:
        shown = worked_models.memory(n)
        found = re.search(r"&= (\d+)\\ \\tfrac.*?cdot (\d+)\\\\\[8pt\]&= (\d+)", shown)
        assert found
        each, count, total = map(int, found.groups())
        assert (each, count, total) == (4, n, 4 * n)
        assert shown.split(r"\approx ")[1].startswith(worked.tex(total / 1e6, 4) + r"\ ")
