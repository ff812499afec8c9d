"""Two studies in one folder: the second is refused, and may go on when the first is over."""

from __future__ import annotations

import pytest

from study.tests.helpers import Quiet, run_study

ONE = {"names": ["tradeoff"], "recipes": ["network"], "n_seeds": 1}


def test_a_second_study_in_the_same_folder_is_refused(tmp_path):
    class Another(Quiet):
        refused = 0

        def finished(self, job, seconds, error):
            with pytest.raises(ValueError, match=r"the folder .* is in use by another process"):
                run_study(tmp_path, **(ONE | {"names": ["kernel-pca"]}))
            self.refused += 1

    reporter = Another()
    assert run_study(tmp_path, **ONE, reporter=reporter) == []
    assert reporter.refused == 1
    assert run_study(tmp_path, **(ONE | {"names": ["kernel-pca"]})) == []
    assert not list(tmp_path.glob(".*.lock"))
