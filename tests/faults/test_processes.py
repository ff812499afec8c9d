"""Fits beside other fits, in threads and in forks, and a fit that diverges."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch

from dkae.training import checkpoint

#: Seconds after which a fork that hangs is given up.
PATIENCE = 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_after_a_fit_can_fit_too(rows, tiny):
    torch.set_num_threads(1)  # with more, torch itself hangs in a fork
    expected = tiny().fit(rows).transform(rows)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        os.write(write, tiny().fit(rows).transform(rows).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = np.frombuffer(pipe.read(), dtype=np.float32)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_a_run_that_diverges_leaves_its_last_good_state(rows, tiny, tmp_path, always):
    wild = {"optimization__learning_rate": "constant", "max_iter": 5}
    wild |= {"optimization__learning_rate_init": 1e30}
    model = tiny().fit(rows)
    before = model.transform(rows)
    with pytest.raises(FloatingPointError, match=r"became (nan|inf)"):
        model.set_params(**wild).fit(rows, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(model.transform(rows), before)
    state = checkpoint._read(tmp_path / "c")
    assert all(t.isfinite().all() for t in state["network"].values())
