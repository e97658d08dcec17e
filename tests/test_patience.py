"""A test that never ends fails by itself: it is named, with what it did, and the others run."""

from __future__ import annotations

import subprocess
import sys

from chapters import ROOT

ENDLESS = {
    "loop": "while True: pass",
    "process": 'subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])',
    "thread": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
}


def test_what_never_ends_is_named_and_the_rest_is_run(tmp_path):
    settings = (ROOT / "conftest.py").read_text(encoding="utf-8")
    assert settings.count("PATIENCE = 1200") == 1
    hasty = settings.replace("PATIENCE = 1200", "PATIENCE = 0.5")
    (tmp_path / "conftest.py").write_text(hasty, encoding="utf-8")
    tests = [f"def test_{name}():\n    {line}\n" for name, line in ENDLESS.items()]
    tests += ["import subprocess, sys, threading", "def test_of_the_rest(): pass\n"]
    (tmp_path / "test_it.py").write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null"]
    run = subprocess.run([*command, "test_it.py"], cwd=tmp_path, capture_output=True, text=True)
    told = run.stdout
    assert "3 failed, 1 passed" in told, told
    for name, line in ENDLESS.items():
        assert f"FAILED test_it.py::test_{name} - Failed: Timeout (>0.5s)" in told
        assert f">       {line}" in told or f">   {line}" in told
