"""The stream along the layers."""

import numpy as np

import viz


def test_lengths_along_the_stream():
    fig = viz.stream_lengths(["embed", "1", "2"], [1, 3, 5], [2, 1], [0.5, 4], chosen=2)
    attention, mlp, line = fig.data
    assert list(attention.x) == list(mlp.x) == [1, 2] and list(line.x) == [0, 1, 2]
    assert list(line.y) == [1, 3, 5] and list(attention.y) == [2, 1] and list(mlp.y) == [0.5, 4]
    assert mlp.marker.pattern.shape == "/"  # not by colour alone
    assert fig.layout.xaxis.ticktext == ("embed", "1", "<b>2</b>")
    assert "no unit" in fig.layout.yaxis.title.text


def test_of_many_layers_some_are_named_and_the_chosen_one_always():
    n = 31
    layers = ["embed", *(str(i) for i in range(1, n))]
    for chosen in (0, 1, 17, 30):
        fig = viz.stream_lengths(layers, np.ones(n), np.ones(n - 1), np.ones(n - 1), chosen=chosen)
        names, places = fig.layout.xaxis.ticktext, fig.layout.xaxis.tickvals
        assert f"<b>{layers[chosen]}</b>" in names and len(names) <= 12
        assert all(abs(a - b) > 1 for a, b in zip(places, places[1:], strict=False))
