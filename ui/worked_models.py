"""How much memory a model takes, worked out. Whole numbers: only megabytes are rounded."""

from engine.parameter_parts import BYTES, memory_bytes
from ui.worked import aligned, tex
from wording import words

say = words("ui.worked_models")


def memory(n_params: int, *, digits: int = 4) -> str:
    """From the number of parameters to megabytes, of a million bytes each."""
    n_bytes = memory_bytes(n_params)
    return aligned(
        rf"\text{{{say('memory')}}} &= {BYTES}\ \tfrac{{\text{{{say('bytes')}}}}}{{\text{{{say('parameter')}}}}}"
        rf" \cdot {n_params}\ \text{{{say('parameters')}}}",
        rf"&= {n_bytes}\ \text{{{say('bytes')}}}",
        rf"&\approx {tex(n_bytes / 1e6, digits)}\ \text{{MB}}",
    )
