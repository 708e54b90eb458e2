"""The stream along the layers."""

import viz


def test_lengths_along_the_stream():
    fig = viz.stream_lengths(["embed", "1", "2"], [1, 3, 5], [2, 1], [0.5, 4], chosen=2)
    attention, mlp, line = fig.data
    assert list(attention.x) == list(mlp.x) == [1, 2] and list(line.x) == [0, 1, 2]
    assert list(line.y) == [1, 3, 5] and list(attention.y) == [2, 1] and list(mlp.y) == [0.5, 4]
    assert mlp.marker.pattern.shape == "/"  # not by colour alone
    assert fig.layout.xaxis.ticktext == ("embed", "1", "<b>2</b>")
    assert "no unit" in fig.layout.yaxis.title.text
