"""The parts of an equation."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.rnn import aligned, contraction, permutation


@pytest.mark.parametrize("equation", ["tbhn,sbhn->bhts", "bhts,sbhv->tbhv", "tbhn,bhnv->tbhv", "sbhn,sbhv->bhnv"])
def test_a_product_of_matrices_is_one_after_transposes(equation: str) -> None:
    parts = contraction(equation)
    a, b = (np.random.default_rng(0).standard_normal([3 + ord(one) % 5 for one in of]) for of in (parts.a, parts.b))
    left, right, both = parts.product_letters
    product = a.transpose(permutation(parts.a, left)) @ b.transpose(permutation(parts.b, right))
    assert parts.is_product
    np.testing.assert_allclose(product.transpose(permutation(both, parts.out)), np.einsum(equation, a, b))


@pytest.mark.parametrize("equation", ["bhn,bhnp->bhp", "bn,bhnp->bhp", "n,bhnp->bhp", "tbn,tbhnp->tbhp"])
def test_rows_by_matrices_are_a_product_without_transposes(equation: str) -> None:
    parts = contraction(equation)
    a, b = (np.random.default_rng(0).standard_normal([3 + ord(one) % 5 for one in of]) for of in (parts.a, parts.b))
    product = np.expand_dims(a, parts.row_axes) @ b
    np.testing.assert_allclose(product[..., 0, :], np.einsum(equation, a, b))


@pytest.mark.parametrize("equation", ["tn,ns->ts", "nb,bhnp->bhp", "bhn,bhpn->bhp", "bhpn,bhnp->bhp", "tsm,sm->tm"])
def test_other_products_have_no_rows(equation: str) -> None:
    assert contraction(equation).row_axes == ()


@pytest.mark.parametrize("equation", ["tsm,sm->tm", "rm,rs->rsm", "tsm,ts->tsm"])
def test_what_is_no_product_of_matrices_is_one_of_elements_and_a_sum(equation: str) -> None:
    parts = contraction(equation)
    a, b = (np.random.default_rng(0).standard_normal([3 + ord(one) % 5 for one in of]) for of in (parts.a, parts.b))
    views = []
    for array, letters in ((a, parts.a), (b, parts.b)):
        order, new = aligned(letters, parts.every)
        views.append(np.expand_dims(array.transpose(order), new))
    axes = tuple(range(len(parts.out), len(parts.every)))
    assert not parts.is_product
    np.testing.assert_allclose((views[0] * views[1]).sum(axis=axes), np.einsum(equation, a, b))


@pytest.mark.parametrize("equation", ["ab,bc", "aab,bc->ac", "ab,bc->ad", "ab,c->c", "a,bc->a", "ab->b"])
def test_other_equations_are_refused(equation: str) -> None:
    with pytest.raises(ValueError, match="einsum: "):
        contraction(equation)
