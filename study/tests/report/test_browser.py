"""The page in a browser: nothing on its console, nothing from the network."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from dkae_study.paper import PAPER
from dkae_study.report.page import write_study_page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--enable-logging=stderr",
]
#: The browser asks its maker for the time and for updates, whatever page it shows. Fonts and
#: scripts, for which pages ask it, are something else.
OF_THE_BROWSER = re.compile(r"^(?!fonts\.|ajax\.)[\w.-]+\.(google|googleapis)\.com$")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_no_console_message_and_no_request(folder, tmp_path):
    page = write_study_page(PAPER, folder, tmp_path / "page.html")
    log = tmp_path / "net.json"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert "<h2" in done.stdout
    assert "CONSOLE" not in done.stderr
    hosts = set(re.findall(r'"url":"\w+://([^/":]+)', log.read_text()))
    assert [host for host in hosts if not OF_THE_BROWSER.search(host)] == []
