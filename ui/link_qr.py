"""A link as a QR code: black on white in both themes, with the quiet zone that readers need."""

import io

import segno

QUIET = 4  # modules of white around it, as ISO/IEC 18004 asks for
MOST = 1800  # characters: beyond, the squares are too small for a telephone across a room


def code(link: str) -> segno.QRCode | None:
    """The QR code; None if the link is too long for one that can be read from a distance."""
    return segno.make_qr(link, error="l", boost_error=False) if len(link.encode()) <= MOST else None


def svg(made: segno.QRCode) -> str:
    """As a drawing that fills its place."""
    out = io.BytesIO()
    made.save(
        out, kind="svg", border=QUIET, dark="#000", light="#fff", xmldecl=False, omitsize=True, nl=False
    )
    return out.getvalue().decode()


def file(made: segno.QRCode, kind: str) -> bytes:
    """As a file: "png", 1,000 pixels or a little more wide, or "svg"."""
    out = io.BytesIO()
    scale = max(1, -(-1000 // (made.symbol_size(border=QUIET)[0]))) if kind == "png" else 10
    made.save(out, kind=kind, border=QUIET, dark="#000", light="#fff", scale=scale)
    return out.getvalue()
