"""The report: one self-contained HTML page that shows every release with its band beside the exact series."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from dbext.demo import statements, svg, vega
from dbext.demo.charts import chart
from dbext.demo.results import Result
from dbext.demo.scenario import Rule
from dbext.demo.story import Asked, Budget, Story

#: Colours of the uses of the budget, in order.
USE_COLOURS = ("#1d4f91", "#3f7cc4", "#7fa9d9", "#b9cfe9", "#e07a1f", "#f0b27a", "#8a96a3")


def write(story: Story, javascript: vega.Library | None, path: Path) -> None:
    """Write the page; without the charting library (`javascript` None) it holds still pictures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(story, javascript), encoding="utf-8")


def page(story: Story, javascript: vega.Library | None) -> str:
    """Return the page as text."""
    scenario = story.scenario
    return Template(_resource("page.html")).substitute(
        title=escape(scenario.title),
        css=_resource("page.css"),
        lead=escape(_lead(story)),
        tiles="".join(f"<li><b>{escape(value)}</b>{escape(label)}</li>" for value, label in _tiles(story)),
        results="\n".join(_section(story, result, still=javascript is None) for result in story.results),
        protected=escape(story.protected),
        entry=escape(scenario.entry_word),
        rules="".join(_rule_row(rule) for rule in scenario.rules),
        difference=escape(difference(story)),
        epsilon=escape(scenario.epsilon),
        delta=escape(scenario.delta),
        budget=_budget(story),
        question_words=escape(scenario.question.words),
        question_sql=escape(statements.ask(scenario, scenario.question)),
        left_before=f"{story.left_before:.4g}",
        question=_answers(story),
        refusal=escape(story.refusal),
        steps=_steps(story),
        engine=escape(vega.CREDIT) if javascript else "Its charts are still pictures: the charting library could not be downloaded.",
        scripts=_scripts(story, javascript) if javascript else "",
    )


def difference(story: Story) -> str:
    """Say in how many figures the mutation constraints change the exact value, and what that means."""
    figures, differing = story.coverage.figures, sum(result.differing for result in story.results)
    if not differing:
        return "The constraints changed nothing here: every exact figure is the same with and without them."
    return (
        f"In {differing:,} of the {figures:,} figures the constraints change the exact value: changes beyond an entry's limit do not "
        f"count. The exact series shown have the constraints applied, as the releases do; without them, "
        f"{story.coverage.raw / figures:.1%} of the intervals contain the exact value."
    )


def budget_sentence(budget: Budget) -> str:
    """Say what all uses together have taken of the budget."""
    return (
        f"Of epsilon {budget.epsilon:.4g}, {budget.spent:.4g} is spent on what was published and answered, {budget.reserved:.4g} is "
        f"reserved for what the releases will still publish, and {budget.left:.4g} is left."
    )


def _lead(story: Story) -> str:
    scenario = story.scenario
    return (
        f"{scenario.source[0].upper()}{scenario.source[1:]}, replayed day by day into a PostgreSQL table. "
        f"Every night four statistics were published with differential privacy."
    )


def _tiles(story: Story) -> list[tuple[str, str]]:
    scenario, coverage = story.scenario, story.coverage
    return [
        (f"{scenario.entries:,}", f"{scenario.entry_word}s"),
        (f"{story.timing.mutations:,}", "mutations captured"),
        (f"{story.timing.days:,}", "days published"),
        (f"{coverage.figures:,}", "figures published"),
        (f"ε = {scenario.epsilon}", f"at δ = {scenario.delta}, for a whole life of a {scenario.entry_word}"),
        (f"{coverage.share:.1%}", "of the 95% intervals contain the exact value"),
    ]


def _section(story: Story, result: Result, *, still: bool) -> str:
    statistic = result.statistic
    facts = dict(result.facts)
    last = {label: facts.pop(label) for label in list(facts)[-1:]}
    covered = f"{result.coverage.admitted:,} of {result.coverage.figures:,} ({result.coverage.share:.1%})"
    facts |= {"95% intervals that contain the exact value": covered, **last}
    listed = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in facts.items())
    picture = _still(story, result) if still else ""
    meaning = f"{statistic.meaning[0].upper()}{statistic.meaning[1:]}; measure <code>{escape(statistic.measure)}</code>."
    return f"""<section class="release">
<h2>{escape(statistic.title)} <code class="name">dp_release.{escape(statistic.name)}</code></h2>
<p>{meaning}{"" if still else _hint(result)}</p>
<div class="chart" id="chart-{escape(statistic.name)}">{picture}</div>
<dl>{listed}</dl>
<details><summary>Declaration</summary><pre>{escape(statements.create_release(statistic))}</pre></details>
</section>"""


def _hint(result: Result) -> str:
    column = result.statistic.group_column
    return f" Choose a small {escape(column)}: the noise is as large there as everywhere, and hides one person." if column else ""


def _still(story: Story, result: Result) -> str:
    group = story.scenario.shown_groups[0] if result.statistic.group_column else None
    points = [point for point in result.points if point.group == group]
    return svg.drawing(points, group or "") if points else ""


def _rule_row(rule: Rule) -> str:
    limits = []
    if rule.max_mutations is not None:
        limits.append(f"at most {rule.max_mutations} mutations")
    if rule.active_within_days is not None:
        limits.append(f"active within {rule.active_within_days} days" + (", then it leaves" if rule.leaves_at_limit else ""))
    applies = f"<code>{escape(rule.applies_to)}</code>" if rule.applies_to else "everything else"
    return f"<tr><td>{escape(rule.name)}</td><td>{applies}</td><td>{escape('; '.join(limits))}</td><td>{escape(rule.reason)}</td></tr>"


def _budget(story: Story) -> str:
    budget = story.budget
    if budget is None:
        return ""
    bars, rows = [], []
    for use, colour in zip(budget.uses, USE_COLOURS, strict=False):
        bars.append(f'<span style="width:{100 * use.share:.2f}%;background:{colour}"></span>')
        rows.append(
            f'<tr><td><span class="key" style="background:{colour}"></span>{escape(use.label)}</td>'
            f'<td class="number">{use.epsilon:.4g}</td><td class="number">{use.share:.1%}</td></tr>'
        )
    head = '<tr><th>use</th><th class="number">ε on its own</th><th class="number">share of the budget</th></tr>'
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="bar">{"".join(bars)}</div>{table}<p>{budget_sentence(budget)}</p>'


def _answers(story: Story) -> str:
    columns = ("answer", "95% interval", "ε left after it", "time")
    head = "<tr><th>asked</th>" + "".join(f'<th class="number">{column}</th>' for column in columns) + "</tr>"
    rows = "".join(_answer_row(word, asked) for word, asked in zip(("first time", "again"), story.asked, strict=False))
    exact = f"<p>Exact (demo only): {story.exact_answer:,}. The second time, the stored answer is returned: the same number, free.</p>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{exact}"


def _answer_row(word: str, asked: Asked) -> str:
    cells = (
        f"{asked.value:,.0f}",
        f"{asked.lower:,.0f} to {asked.upper:,.0f}",
        f"{asked.left:.4g}",
        f"{asked.seconds * 1000:.0f} ms",
    )
    return f"<tr><td>{word}</td>" + "".join(f'<td class="number">{cell}</td>' for cell in cells) + "</tr>"


def _steps(story: Story) -> str:
    scenario = story.scenario
    constraints = "\n".join(statements.add_constraint(scenario, rule) for rule in scenario.rules)
    budget = f"{statements.set_budget(scenario)}\n{statements.mark_public(scenario)}"
    told = [
        ("Track the table: triggers record every insert, update and delete in a private changelog.", statements.track(scenario)),
        ("State what an entry can do. Changes beyond the limit are left out of the statistics; writes are never refused.", constraints),
        ("Set the budget, and say which list of group keys is public.", budget),
        ("Declare the releases (their statements are above, under each chart). The lifetime loss of each is reserved at once.", ""),
        ("Publish each night. The call seals the day, then publishes all that is due; it may be repeated at will.", "CALL dp_publish();"),
        ("Let people read the release tables, and look after the budget.", "TABLE dbext.release_status;\nTABLE dbext.budget_status;"),
    ]
    items = (f"<li>{escape(words)}" + (f"<pre>{escape(code)}</pre>" if code else "") + "</li>" for words, code in told)
    return f'<ol class="steps">{"".join(items)}</ol>'


def _scripts(story: Story, javascript: vega.Library) -> str:
    charts = {result.statistic.name: chart(story.scenario, result) for result in story.results}
    data = json.dumps(charts, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    parts = [f"<script>{source}</script>" for source in javascript]
    parts.append(f'<script type="application/json" id="charts">{data}</script>')
    parts.append(f"<script>{_resource('page.js')}</script>")
    return "\n".join(parts)


def _resource(name: str) -> str:
    return resources.files("dbext.demo").joinpath(name).read_text(encoding="utf-8")
