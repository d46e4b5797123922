"""What TVM itself cannot do, seen to fail: where one of these passes, the adapter should learn to do it."""

from __future__ import annotations

import pytest

tvm = pytest.importorskip("tvm")


def test_topis_lstm_still_cannot_be_made_a_program():
    from tvm import te
    from tvm.topi.nn.lstm import lstm

    x, w_ih, w_hh = (te.placeholder(shape) for shape in ((4, 1, 8), (64, 8), (64, 16)))
    h, c = lstm(x, w_ih, w_hh)
    with pytest.raises(tvm.error.InternalError, match=r"te\.ScanOp"):
        te.create_prim_func([x, w_ih, w_hh, h, c])
