"""How much of the product of its axes a run covers."""

from __future__ import annotations

from fake_records import record

from rnnbench.reports.coverage import coverage, sentences


def points():
    """2 × 3 values of time and chunk, of which three points are there, one of them not checked on one backend."""
    here = [("looped", 1), ("looped", 4), ("unrolled", 16)]
    for route in ("linalg", "onnx"):
        for time, chunk in here:
            outcome = "unsupported" if (route, time) == ("onnx", "unrolled") else "ok"
            yield record("fakemlir", route, time=time, chunk=chunk, outcome=outcome)


def test_points_and_pairs_are_counted_of_the_product_and_by_target():
    (found,) = coverage(list(points()))
    assert (found.points, found.product) == (3, 6)
    assert (found.pairs, found.all_pairs) == (3, 6)
    assert found.checked == {"fakemlir:linalg": 3, "fakemlir:onnx": 2}
    told = list(sentences(found))
    assert "3 points of a product of 6" in told[0]
    assert "fakemlir:linalg 100 %, fakemlir:onnx 67 %" in told[1]


def test_a_whole_product_is_called_whole():
    axes = [(time, chunk) for time in ("looped", "unrolled") for chunk in (1, 4)]
    records = [record("fakemlir", "linalg", time=time, chunk=chunk) for time, chunk in axes]
    (found,) = coverage(records)
    assert next(iter(sentences(found))).endswith("all 4 points of the product of its axes")


def test_a_pair_counts_whatever_case_it_was_checked_in():
    records = list(points())
    elsewhere = [record("fakemlir", "onnx", time="unrolled", chunk=16).model_copy(update={"case": "another"})]
    found, single = coverage([*records, *elsewhere])
    assert found.checked == {"fakemlir:linalg": 3, "fakemlir:onnx": 3}
    assert single.pairs == 0


def test_networks_with_other_keys_are_points_of_one_case():
    models = ({"network": "mingru", "layers": 3}, {"network": "gla", "heads": 4})
    records = []
    for model in models:
        one = record("fakemlir", "linalg")
        records.append(one.model_copy(update={"params": one.params.model_copy(update={"model": model})}))
    (found,) = coverage(records)
    assert (found.points, found.pairs) == (2, 6)
