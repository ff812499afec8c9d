"""The invented study and its page, made once."""

import pytest
from dkae_study.paper import PAPER
from dkae_study.report.page import write_study_page

from study.tests.report.invented import invent_runs, write_runs


@pytest.fixture(scope="session")
def runs():
    return invent_runs()


@pytest.fixture(scope="session")
def folder(runs, tmp_path_factory):
    """Return a folder with the whole study at the smallest scale."""
    return write_runs(runs, tmp_path_factory.mktemp("study") / "smoke")


@pytest.fixture(scope="session")
def page(folder):
    return write_study_page(PAPER, folder).read_text(encoding="utf-8")
