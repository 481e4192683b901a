"""What the documents say is what happens."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from jacli.cli.argv import parse
from transcripts import CONSOLE, ROOT, rerun

README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


TRANSCRIPTS = [transcript for page in PAGES for transcript in CONSOLE.findall(page.read_text())]


@pytest.mark.parametrize("transcript", TRANSCRIPTS)
def test_transcripts_are_real(transcript: str) -> None:
    assert rerun(transcript) == transcript


def test_the_commands_of_the_tour_are_well_formed() -> None:
    lines = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("jacli ")]
    assert len(commands) >= 5
    for command in commands:
        assert parse(command).command is not None


PROGRAMS = [(page.name, blocks(page, "python")) for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize(("page", "programs"), PROGRAMS, ids=[page for page, _ in PROGRAMS])
def test_the_python_runs(page: str, programs: list[str]) -> None:
    """Blocks of one page run one after another; ``expression  # value`` says what comes out."""
    names: dict[str, object] = {}
    for statement in ast.parse("\n".join(programs)).body:
        exec(compile(ast.Module([statement], []), page, "exec"), names)
    for line in "\n".join(programs).splitlines():
        code, _, comment = line.partition("  # ")
        if comment and "…" not in comment and "JSON" not in comment:
            assert repr(eval(code, names)) == comment.strip()


def test_the_json_document_has_exactly_the_documented_keys() -> None:
    import jacli

    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "json.md").read_text()))
    for document in (
        jacli.jacobian("x*y", [1, 2], weights=[3]).to_dict(),
        jacli.jvp("x*y", [1, 2], [3, 4]).to_dict(),
        jacli.grad("x*y", [1, 2]).to_dict(),
        jacli.backward("b = x*y; b**2", [1, 2], explain=True, show="b").to_dict(),
    ):
        companion = re.compile(r"^(vjp|jvp|grad|backward)_")
        assert {companion.sub("", key) for key in document} <= documented
        for key in document.keys() & {"calls", "steps", "shown"}:
            assert {name for item in document[key] for name in item} <= documented


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_rooms_named_for_contributors_exist() -> None:
    for room in re.findall(r"^\| `(jacli/[^`]+)`", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE):
        assert (ROOT / room).exists(), room


def test_the_readme_has_the_two_set_up_commands() -> None:
    setup = README.split("## Set up\n")[1].split("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)\n```$", setup, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    assert all("\n" not in command for command in commands)
