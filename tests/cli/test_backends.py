"""`rnnbench backends`: what is installed, and how to install the rest."""

from __future__ import annotations


def test_backends_prints_what_is_installed_and_how_to_install_the_rest(rnnbench):
    done = rnnbench("backends")
    assert "rnnbench-fake 1.0" in done.stdout
    assert "absent-runtime is not installed" in done.stdout
    assert "rnnbench[absent]" in done.stdout
    for backend in ("numpy", "iree", "tvm"):
        assert backend in done.stdout
