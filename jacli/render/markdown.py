"""GitHub's Markdown: tables with names and formulas as code."""

from __future__ import annotations

from jacli.render.options import Options
from jacli.render.report import sections
from jacli.render.sections import Facts, Notes, Section, Table
from jacli.result import Result


def render(result: Result, options: Options) -> str:
    """The sections, one after another, an empty line between them."""
    return "\n".join(_draw(section) for section in sections(result, options))


def _draw(section: Section) -> str:
    match section:
        case Facts(lines):
            return "".join(f"- {label}: {_code(text)}\n" for label, text in lines)
        case Table():
            return draw_table(section)
        case Notes(lines):
            return "".join(f"- {f'{mark} {text}'.strip()}\n" for mark, text in lines)
        case _:
            return f"**{section.text}**\n"


def draw_table(table: Table) -> str:
    """A pipe table; the cells of the columns for words are code, so that no character of a formula is markup."""
    columns = range(len(table.header))
    rule = [":--" if index in table.words else "--:" for index in columns]
    rows = [[_code(row[index]) if index in table.words else row[index] for index in columns] for row in table.rows]
    header = [name.replace("|", r"\|") for name in table.header]
    lines = ["| " + " | ".join(line) + " |" for line in (header, rule, *rows)]
    return "\n".join([*([f"**{table.title}**", ""] if table.title else []), *lines]) + "\n"


def _code(text: str) -> str:
    """A code span; a pipe is escaped even there, or it would end the cell."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text.replace('|', chr(92) + '|')}{fence}"
