"""A server under load, for a moment: real processes, and no time is judged."""

import pytest

from lamaml.bench.serving import can_serve, serving_load


@pytest.mark.skipif(not can_serve(), reason="needs pip install 'lamaml[serve]'")
def test_a_server_is_measured():
    found = serving_load(seconds=0.3, num_rows=500)
    assert min(vars(found).values()) > 0
    assert found.idle_p50_ms <= found.idle_p99_ms
    assert found.share == pytest.approx(found.rows_per_second / found.bare_rows_per_second)
    assert "while learning" in str(found)
