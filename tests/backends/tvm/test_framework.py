"""The target of TVM's programs has no feature that the machine withholds."""

import pytest

from rnnbench.backends.tvm import framework
from rnnbench.backends.tvm.framework import lanes, products_of_bytes, registers, target, withheld
from rnnbench.measure import processor_features, x86_lanes

AVX2_MACHINE = frozenset({"sse", "sse2", "ssse3", "pni", "sse4_1", "sse4_2", "sse4a", "avx", "avx2", "fma", "f16c"}) | {
    *("bmi1", "bmi2", "abm", "popcnt", "movbe", "vaes"),
}
OF_AVX2 = ("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "sse4a", "avx", "avx2", "fma", "f16c")
OF_BITS = ("bmi", "bmi2", "lzcnt", "popcnt", "movbe")


def test_a_feature_of_the_model_that_the_machine_does_not_offer_is_left_out() -> None:
    assert withheld((*OF_AVX2, "avx512vl", "avx512f", "gfni"), AVX2_MACHINE) == ("avx512f", "avx512vl", "gfni")


def test_features_of_old_models_are_left_out_too() -> None:
    assert withheld((*OF_AVX2, "xop", "tbm"), AVX2_MACHINE - {"ssse3"}) == ("ssse3", "tbm", "xop")


def test_features_that_linux_names_in_another_way_are_found() -> None:
    assert withheld((*OF_AVX2, *OF_BITS), AVX2_MACHINE) == ()
    avx512 = frozenset({"sse2", "avx512_vbmi2", "avx512_vnni", "avx512f", "avx_vnni"})
    assert withheld(("avx512vbmi2", "avx512vnni", "avx512f", "avxvnni"), avx512) == ()


def test_how_the_processor_is_tuned_is_left_alone() -> None:
    assert withheld(("fast-lzcnt", "branchfusion", "vzeroupper", "64bit"), AVX2_MACHINE) == ()


def test_other_architectures_and_silent_kernels_withhold_nothing() -> None:
    assert withheld(("sve", "avx512f"), frozenset({"asimd", "fp"})) == ()
    assert withheld(("avx512f",), frozenset()) == ()


def test_products_of_bytes_are_added_where_the_model_lacks_what_the_machine_offers() -> None:
    avx512 = frozenset({"sse2", "avx", "avx2", "avx512f", "avx512_vnni", "avx_vnni"})
    model = ("sse2", "avx", "avx2", "avx512f")
    assert products_of_bytes(model, avx512) == ("avx512vnni",)
    assert products_of_bytes((*model, "avx512vnni"), avx512) == ()
    assert products_of_bytes(model, avx512 - {"avx512f"}) == ("avxvnni",)
    assert products_of_bytes(model, frozenset({"sse2", "avx", "avx2", "avx512f"})) == ()
    assert products_of_bytes(("neon", "sve"), frozenset({"asimd", "fp"})) == ()


def test_the_target_of_this_machine_has_vectors_that_it_offers() -> None:
    changed = [str(name) for name in target().attrs.get("mattr", ())]
    left_out = {name.removeprefix("-") for name in changed if name.startswith("-")}
    assert not left_out & processor_features()
    assert lanes() <= 8 or "avx512f" in processor_features() or "sse2" not in processor_features()
    assert registers() == 32 or "avx512f" not in processor_features()


@pytest.mark.parametrize(
    ("features", "width", "count"),
    [(OF_AVX2, 8, 16), ((*OF_AVX2, "avx512f"), 8, 16), (("avx512f",), 16, 32), (("neon",), 4, 32)],
)
def test_only_avx_512_and_other_architectures_have_32_registers(
    monkeypatch: pytest.MonkeyPatch, features: tuple[str, ...], width: int, count: int
) -> None:
    """A machine may withhold AVX-512 from a model that has it: its vectors are then narrower."""
    monkeypatch.setattr(framework, "_features_of_model", lambda: features)
    monkeypatch.setattr(framework, "lanes", lambda: width)
    assert registers.__wrapped__() == count


def test_vectors_are_as_wide_as_the_widest_feature() -> None:
    assert x86_lanes((*OF_AVX2, "avx512f")) == 16
    assert x86_lanes(OF_AVX2) == 8
    assert x86_lanes(("sse", "sse2")) == 4
    assert x86_lanes(("neon", "sve")) == 0
