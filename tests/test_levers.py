"""What makes a cold run quick changes no answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENV = {**os.environ, "PYTHONPATH": str(ROOT), "JACLI_SERVER": "off"}


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENV, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_is_put_off_is_there_when_it_is_asked_for() -> None:
    said = python("""
import sys
from jacli.cli import levers
levers.pull()
import torch
name = "torch._meta_registrations"
x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
(x**3).sum().backward()
print(x.grad.tolist(), torch.vmap(lambda a: 2 * a)(x).tolist(), type(sys.modules[name]).__name__)
print(torch._meta_registrations.pooling_output_shape(5, 2, 0, 1, 1, False), type(sys.modules[name]).__name__)
print(torch.linalg.inv(torch.eye(3, device="meta")).shape)
""")
    assert said.splitlines() == ["[3.0, 12.0] [2.0, 4.0] _Deferred", "4 module", "torch.Size([3, 3])"]


def test_someone_elses_code_has_all_of_torch(tmp_path: Path) -> None:
    code = """
import torch
def f(x):
    torch.linalg.inv(torch.eye(3, device="meta"))
    return x**2
"""
    (tmp_path / "mine.py").write_text(code)
    words = ["check", "x**2", "--at", "3", "--torch", "mine.py:f"]
    run = [sys.executable, "-m", "jacli", *words]
    done = subprocess.run(run, capture_output=True, text=True, env=ENV, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
