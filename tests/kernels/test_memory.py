"""How much memory there is: of the machine, or of a container on it."""

from __future__ import annotations

import pytest

from dkae.kernels import features as memory


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that makes a machine of 8000 bytes, with limits that files announce."""
    monkeypatch.setattr(memory, "_of_machine", lambda: 8000)

    def with_limits(*texts: str | None) -> None:
        paths = [tmp_path / str(i) for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            if text is not None:
                path.write_text(text)
        monkeypatch.setattr(memory, "LIMITS", tuple(paths))

    return with_limits


@pytest.mark.parametrize(
    ("texts", "n_bytes"),
    [
        (("max\n", None), 8000),
        (("9223372036854771712\n", None), 8000),
        (("", None), 8000),
        ((None, "4000\n"), 4000),
        (("max\n", "4000"), 4000),
    ],
)
def test_a_container_may_have_less_than_the_machine(machine, texts, n_bytes):
    machine(*texts)
    assert memory.total_memory() == n_bytes
    assert memory.default_budget() == n_bytes / 4


def test_it_is_known_here():
    assert 0 < memory.default_budget() < memory.total_memory()


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2e6, "2 MB"), (16.5e9, "16.5 GB")],
)
def test_in_words(n_bytes, words):
    assert memory.in_words(n_bytes) == words
