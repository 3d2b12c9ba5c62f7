"""How the demo speaks on a terminal: headings, statements with their answers, tables, progress."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dbext.demo.results import Point, Result
from dbext.demo.scenario import Scenario


class Teller:
    """Prints the demo's story to one console. Progress bars appear only where the console is a terminal."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False)
        self._step = 0

    def heading(self, words: str) -> None:
        """Print the heading of the next step."""
        self._step += 1
        self.console.print()
        self.console.print(Text(f"{self._step}. {words}", style="bold"))

    def say(self, words: str) -> None:
        """Print a sentence, wrapped and indented."""
        for line in words.splitlines():
            self.console.print(Text(line), soft_wrap=False)

    def statement(self, statement: str, answer: str = "") -> None:
        """Print an SQL statement and what the database said."""
        self.console.print(Text(textwrap.indent(statement, "   "), style="cyan"), soft_wrap=True)
        if answer:
            self.console.print(Text(textwrap.indent(answer, "   → "), style="green"), soft_wrap=True)

    def error(self, message: str) -> None:
        """Print a refusal of the database."""
        self.console.print(Text(textwrap.indent(message, "   "), style="red"), soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> None:
        """Print a table; the first `text_columns` columns are text, the others numbers."""
        table = Table(title=Text(title), title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for place, column in enumerate(columns):
            table.add_column(Text(column), justify="left" if place < text_columns else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self.console.print(table)

    @contextmanager
    def progress(self, words: str, total: int) -> Iterator[Progress]:
        """Show a bar for a long step, on a terminal only; the caller advances task 0."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as bar:
            bar.add_task(words, total=total)
            yield bar


def sample(teller: Teller, scenario: Scenario, result: Result) -> None:
    """Print a few figures of one release with their intervals."""
    statistic = result.statistic
    if statistic.group_column:
        points = result.on(scenario.sample_day, scenario.shown_groups)
        title = f"dp_release.{statistic.name}: {statistic.title} ({scenario.sample_day})"
        labels = [point.group or "" for point in points]
    else:
        wanted = {scenario.sample_day.replace(month=month) for month in (3, 6, scenario.sample_day.month, 12)}
        points = [point for point in result.points if point.day in wanted]
        title = f"dp_release.{statistic.name}: {statistic.title}"
        labels = [str(point.day) for point in points]
    columns = (statistic.group_column or "end of", "released", "95% interval", "exact (demo only)")
    teller.table(title, columns, [_cells(label, point) for label, point in zip(labels, points, strict=True)])


def _cells(label: str, point: Point) -> tuple[str, ...]:
    return label, f"{point.value:,.0f}", f"{point.lower:,.0f} to {point.upper:,.0f}", f"{point.exact:,}"
