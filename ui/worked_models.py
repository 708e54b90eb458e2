"""How much memory a model takes, worked out. Whole numbers: only megabytes are rounded."""

from engine.parameter_parts import BYTES, memory_bytes
from ui.worked import aligned, tex
from wording import words

say = words("ui.worked_models")


def memory(n_params: int, *, digits: int = 4) -> str:
    """From the number of parameters to megabytes, of a million bytes each."""
    n_bytes, unit = memory_bytes(n_params), rf"\text{{{say('bytes')}}}"
    each = rf"{BYTES}\ \tfrac{{{unit}}}{{\text{{{say('parameter')}}}}}"
    megabytes = rf"\text{{{say('megabytes')}}}"
    return aligned(
        rf"\text{{{say('memory')}}} &= {each} \cdot {n_params}",
        rf"&= {n_bytes}\ {unit}",
        rf"&\approx {tex(n_bytes / 1e6, digits)}\ {megabytes}",
    )
