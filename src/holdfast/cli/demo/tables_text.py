"""How the tables look on the demo's stage: while they fill, and compared at the end."""

from typing import TYPE_CHECKING

from rich.table import Table

from holdfast.cli.demo.tables_verdict import TablesVerdict

if TYPE_CHECKING:
    from holdfast.cli.demo.tables_look import TablesLook

_SHORT = {"process_instances": "instances", "batch_operation_items": "batch items"}
_RARE = {"batch_operation_items"}  # not worth a line as long as it is empty


def look_line(look: "TablesLook") -> str:
    """The tables at one moment, in a line."""
    parts = [
        f"{_SHORT.get(name, name)} {_states(states)}"
        for name, states in look.states.items()
        if states
    ]
    if content := _content(look):
        parts.append(f"content {content}")
    return "; ".join([*parts, _behind(look)])


def look_table(look: "TablesLook") -> Table:
    """The tables at one moment, a line for each."""
    table = Table.grid(padding=(0, 2))
    for name, states in look.states.items():
        if states or name not in _RARE:
            short = _SHORT.get(name, name)
            table.add_row(f"  [dim]table[/] {short}", _states(states) or "[dim]no rows yet[/]")
    if content := _content(look):
        table.add_row("  [dim]tables[/] content", content)
    table.add_row("  [dim]behind the log[/]", _behind(look))
    return table


def compared_table(verdict: TablesVerdict) -> Table:
    """What two have counted, side by side."""
    table = Table(show_header=True, header_style="bold", min_width=60)
    table.add_column("tables")
    table.add_column("rows", justify="right")
    table.add_column("in the journal", justify="right", style="dim")
    for each in verdict.compared:
        style = "green" if each.in_tables == each.in_journal else "bold red"
        name = f"{each.table} {each.state}".strip()
        table.add_row(name, f"[{style}]{each.in_tables:,}[/]", f"{each.in_journal:,}")
    return table


def answers(verdict: TablesVerdict) -> list[str]:
    """What the tables were asked, and what they answered."""
    found = verdict.declined
    some = ", ".join(map(str, found.orders))
    return [
        f"asked of the tables, which orders were declined: {found.total:,}, such as {some}"
        f" [dim]({found.milliseconds:.0f} ms)[/]",
        f"drawn from the tables, how much got done: [bold]{verdict.picture}[/]",
    ]


def _states(states: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in states.items())


def _content(look: "TablesLook") -> str:
    counts = {name.removeprefix("content_"): rows for name, rows in look.content.items() if rows}
    return ", ".join(f"{rows:,} {name}" for name, rows in counts.items())


def _behind(look: "TablesLook") -> str:
    if not look.behind_records:
        return "nothing missing"
    return f"{look.behind_records:,} records and {look.behind_seconds:.1f} s behind"
