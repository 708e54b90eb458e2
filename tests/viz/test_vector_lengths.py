"""Lengths of vectors by how often their tokens occur."""

import numpy as np

import viz


def test_lengths_by_frequency_keep_the_unseen_apart():
    counts, lengths = np.array([1000, 0, 10, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    fig = viz.norm_scatter(counts, lengths, list("abcde"), labelled=[2, 4], chosen=0)
    never = [trace for trace in fig.data if trace.xaxis in (None, "x")]
    seen = [trace for trace in fig.data if trace.xaxis == "x2"]
    assert sorted(y for trace in never for y in trace.y) == [2, 5]
    points = [point for trace in seen for point in zip(trace.x, trace.y, strict=True)]
    assert sorted(points) == [(1, 4), (10, 3), (1000, 1)]
    assert fig.layout.xaxis2.type == "log" and list(fig.layout.xaxis2.ticktext) == ["1", "10", "100", "1,000"]
    assert fig.layout.xaxis.ticktext == ("never",)
    assert fig.layout.yaxis.title.text and fig.layout.xaxis2.title.text
    chosen = next(trace for trace in seen if trace.name == "chosen")
    assert list(chosen.text) == ["a"] and chosen.customdata[0][1] == "1,000"


def test_a_text_in_which_nothing_occurs():
    fig = viz.norm_scatter([0, 0], [1.0, 2.0], ["a", "b"])
    assert sum(len(trace.y) for trace in fig.data) == 2
