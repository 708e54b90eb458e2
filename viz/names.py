"""Where names are written, so that they neither meet nor hide the points that they name."""

from collections.abc import Sequence


def name_sides(points: Sequence[tuple[int, float, float, str]]) -> dict[int, str]:
    """On which side of its point each name is written; the first ones come first.

    No two names meet, and none lies on one of the points; but the first one is always written.

    Args:
        points: (row, x, y, name), in pixels as far as they can be known.

    Returns:
        Row -> Plotly's `textposition`. A name for which there is no room is left out: hovering tells it.

    >>> name_sides([(0, 0, 0, "cat"), (1, 5, 0, "dog"), (2, 2, 0, "owl"), (3, 3, 1, "ox"), (4, 4, 0, "bee")])
    {0: 'top center', 1: 'bottom center', 2: 'middle left', 3: 'middle right'}
    """
    taken = [(x - 7.0, y - 7.0, x + 7.0, y + 7.0) for _, x, y, _ in points]
    found = {}
    for i, (row, x, y, name) in enumerate(points):
        wide, high = 8.0 * len(name), 16.0
        for side, left, low in (
            ("top center", x - wide / 2, y + 8),
            ("bottom center", x - wide / 2, y - 8 - high),
            ("middle left", x - 9 - wide, y - high / 2),
            ("middle right", x + 9, y - high / 2),
        ):
            box = (left, low, left + wide, low + high)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                taken.append(box)
                found[row] = side
                break
        else:
            if i == 0:  # the first one is the one that is looked at
                found[row] = "middle left"
                taken.append((x - 9 - wide, y - high / 2, x - 9, y + high / 2))
    return found
