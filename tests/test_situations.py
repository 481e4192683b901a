"""Situations that people reported, through the command line: the right numbers, or a refusal that helps."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal, localcontext
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from jacli.cli import run

DATA = Path(__file__).parent / "data" / "situations.jsonl"
SITUATIONS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
KEYS = ("jacobian", "vjp", "jvp", "hessian")
NO_DERIVATIVE = {"kink", "edge", "undefined"}


def words(situation: dict[str, Any]) -> list[str]:
    """The command line of a situation, asking for JSON where it expects numbers or statuses."""
    if situation.get("argv"):
        given = list(situation["argv"])
        numbers = any(key in situation["expect"] for key in KEYS)
        return [*given, "--format", "json"] if numbers and "--format" not in given else given
    given = [situation["command"], situation["expr"], "--at", situation["at"], "--format", "json"]
    named = "=" in situation["at"] or situation["at"].lstrip().startswith("{")
    if situation.get("vars"):
        given += ["--wrt" if named else "--vars", ",".join(situation["vars"])]
    if situation.get("weights"):
        given += ["--tangent" if situation["command"] in ("jvp", "hvp") else "--weights", situation["weights"]]
    return given


def flat(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        for value in values:
            yield from flat(value)
    else:
        yield values


def close(got: str | float, truth: str, tolerance: str) -> bool:
    with localcontext(prec=60):
        return abs(Decimal(got) - Decimal(truth)) <= Decimal(tolerance) * abs(Decimal(truth))


def check_numbers(document: dict[str, Any], key: str, truths: Any) -> None:
    prefix = "" if key == "jacobian" else key + "_"
    columns = (document[key], document[prefix + "exact"], document[prefix + "status"], truths)
    for value, exact, status, truth in zip(*map(flat, columns), strict=True):
        if truth == "undefined":
            assert status in NO_DERIVATIVE
            continue
        assert exact is not None
        assert close(exact, truth, "1e-19")
        assert status in ("agree", "rounding")
        if status == "agree":
            assert close(value, truth, "1e-9") or abs(value) < 1e-15


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s["id"])
def test_situation(
    situation: dict[str, Any], capfd: pytest.CaptureFixture[str], monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(situation.get("stdin", "").encode())))
    status = run(words(situation))
    out, err = capfd.readouterr()
    expect = situation["expect"]
    assert not list(tmp_path.iterdir())
    assert "Traceback" not in out + err
    assert status in (0, 1, 2)
    if status == 2:
        assert not out
        assert "error" in json.loads(err) if "json" in words(situation) else err.startswith("error: ")
        assert "error" in expect or "refusal" in expect.get("behaviour", "")
        return
    if situation["id"] == "one-bad-line-in-a-stream":
        assert status == 1
        assert "3" in err
        assert "5;6" in err
        return
    assert "error" not in expect or "if_accepted" in expect
    document = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    check_document(document, expect | expect.get("if_accepted", {}), status)


def check_document(document: dict[str, Any], expect: dict[str, Any], status: int) -> None:
    for key in KEYS:
        if key in expect:
            check_numbers(document, key, expect[key])
    for key, mine in (("vars", "variables"), ("status", "status")):
        if key in expect:
            assert document[mine] == expect[key]
    if "one_sided" in expect:
        for pair, wanted in zip(document["one_sided"][0], expect["one_sided"][0], strict=True):
            same = (a == b or close(a, b, "1e-19") for a, b in zip(pair or (), wanted or (), strict=True))
            assert all(same)
    assert (status == 0) == (document["verdict"] == "agree")
