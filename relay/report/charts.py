"""Charts as inline SVG, drawn by pygal. Colours and fonts are the page's; every mark has its value in a title.

The parts that pygal adds for its own pages (a script, a style, what its script looks for) are removed: a report runs nothing.
"""

import math
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final
from xml.etree import ElementTree

import pygal
from markupsafe import Markup
from pygal.style import Style

from relay.report.content import Bars, Chart, Columns, OverTime, Shares, Unit
from relay.report.text import count, moment, number, share, shown, size, span
from relay.report.time_steps import TimeSlot, covered_of, time_slots

# pygal leaves a hook for its plugins in the interpreter, of a kind that Python warns of at every import. There are none here.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

_WIDTH: Final = 1080
_HEIGHT: Final = 260
_ROW: Final = 25
_MOST_BARS: Final = 20
_TIME_LABELS: Final = 6
_COLUMN_LABELS: Final = 16
_LONGEST_LABEL: Final = 42
_TICKS: Final = 5
_FONT: Final = 12
# The page's style has the rest; pygal measures labels by these.
_STYLE: Final = Style(
    label_font_size=_FONT, major_label_font_size=_FONT, value_font_size=_FONT, font_family="sans-serif"
)
_ROUNDED: Final = frozenset({"x", "y", "width", "height"})
_KEPT: Final = _ROUNDED | {"class", "d", "transform", "viewBox", "text-anchor"}


def svg(chart: Chart) -> Markup:
    """Return the chart's drawing; nothing if there is nothing to draw."""
    if isinstance(chart, OverTime):
        return _over_time(chart)
    values = [(label, value) for label, value in chart.values if value > 0]
    if not values:
        return Markup("")
    if isinstance(chart, Columns):
        return _columns(chart)
    whole = sum(value for _, value in values) if isinstance(chart, Shares) else 0.0
    return _bars(chart, _with_the_others(values), whole)


def steps_told(chart: OverTime) -> str:
    """Return the time range of a chart's steps, and their length."""
    slots = list(time_slots(chart.series, chart.step_s))
    if not slots:
        return ""
    step = slots[0].seconds
    return f"In steps of {span(step)}, {moment(slots[0].begin)} to {moment(slots[-1].begin + timedelta(seconds=step))} UTC."


def axis_values(most: float, unit: Unit) -> list[float]:
    """Return round values from 0 on, at which an axis for `most` has its lines; none is far above it."""
    if most <= 0:
        return [0.0]
    base = 1024.0 if unit == "bytes" and most >= 1024 else 10.0
    aimed = most / _TICKS
    power = base ** math.floor(math.log(aimed, base))
    rounds: Sequence[float] = [2.0**one for one in range(11)] if base == 1024.0 else (1, 2, 2.5, 5, 10)
    step = next((one * power for one in rounds if one * power >= aimed), base * power)
    if unit == "count":
        step = max(step, 1.0) if most >= 1 else step
        step = math.ceil(step) if step > 1 else step
    return [step * place for place in range(math.floor(most / step) + 1)]


def _value_text(value: float, unit: Unit, *, rate: bool = False) -> str:
    if rate:
        return f"{size(value) if unit == 'bytes' else number(value)} a second"
    return {"bytes": size, "seconds": span, "count": count}[unit](value)


def _axis_text(unit: Unit) -> Callable[[float], str]:
    return {"bytes": size, "seconds": span, "count": number}[unit]


def _with_the_others(values: list[tuple[str, float]]) -> list[tuple[str, float]]:
    if len(values) <= _MOST_BARS:
        return values
    rest = values[_MOST_BARS - 1 :]
    return [*values[: _MOST_BARS - 1], (f"{len(rest)} others", sum(value for _, value in rest))]


def _bars(chart: Bars | Shares | Columns, values: list[tuple[str, float]], whole: float) -> Markup:
    def told(value: float) -> str:
        return _value_text(value, chart.unit) + (f", {share(value, whole)}" if whole else "")

    most = max(value for _, value in values)
    drawn = pygal.HorizontalBar(
        **_config(len(values) * _ROW + 45, chart.unit, most),
        print_values=True,
        print_values_position="top",
        spacing=0,
        # This leaves room for the value that is printed after the longest bar.
        range=(0, most * 1.22),
    )
    drawn.x_labels = [_short(label) for label, _ in reversed(values)]
    drawn.add("", [_bar(value, f"{label}: {told(value)}") | {"formatter": told} for label, value in reversed(values)])
    return _drawn(drawn, chart.title)


def _columns(chart: Columns) -> Markup:
    most = max(value for _, value in chart.values)
    drawn = pygal.Bar(**_config(_HEIGHT, chart.unit, most), range=(0, most), x_label_rotation=0)
    every = math.ceil(len(chart.values) / _COLUMN_LABELS)
    drawn.x_labels = [_short(label) if place % every == 0 else "" for place, (label, _) in enumerate(chart.values)]
    drawn.add("", [_bar(value, f"{label}: {_value_text(value, chart.unit)}") for label, value in chart.values])
    return _drawn(drawn, chart.title)


def _over_time(chart: OverTime) -> Markup:
    slots = list(time_slots(chart.series, chart.step_s))
    heights = [_heights(chart, slot) for slot in slots]
    most = max((sum(slot) for slot in heights), default=0.0)
    if not most:
        return Markup("")
    drawn = pygal.StackedBar(**_config(_HEIGHT, chart.unit, most), range=(0, most))
    drawn.x_labels = _time_labels(slots)
    for place, name in enumerate(chart.series):
        bars = []
        for slot, height in zip(slots, heights, strict=True):
            told = _value_text(height[place], chart.unit, rate=chart.between is not None)
            bars.append(_bar(height[place], f"{moment(slot.begin)} UTC, {name}: {told}"))
        drawn.add("", bars)
    return _drawn(drawn, chart.title)


def _bar(value: float, title: str) -> dict[str, Any]:
    """Return a bar; a missing value has none."""
    return {"value": value, "label": shown(title)} if value else {"value": None}


def _heights(chart: OverTime, slot: TimeSlot) -> list[float]:
    if chart.between is None:
        return list(slot.values)
    seconds = covered_of(slot.begin, slot.seconds, *chart.between)
    return [value / seconds for value in slot.values]


def _time_labels(slots: list[TimeSlot]) -> list[str]:
    step = slots[0].seconds
    days = len(slots) * step > 3 * 86400
    shape = "%Y-%m-%d" if days else "%m-%d %H:%M" if step >= 3600 else "%H:%M" if step >= 60 else "%H:%M:%S"
    every = max(math.ceil(len(slots) / _TIME_LABELS), 1)
    return [slot.begin.strftime(shape) if place % every == 0 else "" for place, slot in enumerate(slots)]


def _short(label: str) -> str:
    text = shown(label)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _config(height: int, unit: Unit, most: float) -> dict[str, Any]:
    return {
        "width": _WIDTH,
        "height": height,
        "margin": 4,
        "margin_right": 12,
        "margin_bottom": 9,  # This includes letters below the line
        "js": (),
        "css": (),
        "style": _STYLE,
        "show_legend": False,
        "truncate_label": -1,
        "y_labels": axis_values(most, unit),
        "value_formatter": _axis_text(unit),
        "show_x_guides": False,
    }


# ---- what pygal drew, as the page has it -----------------------------------------------------------------------------


def _drawn(chart: Any, label: str) -> Markup:
    """Return the drawing. A bar's label becomes its title, which a browser shows at the pointer."""
    root: ElementTree.Element = chart.render_tree()
    root.tag = "svg"
    for parent in list(root.iter()):
        for child in list(parent):
            if _is_taken_away(child):
                parent.remove(child)
            elif child.tag == "desc":
                child.tag = "title"
    while _without_empty_groups(root):
        pass
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name not in _KEPT or (name == "class" and (value in ("", "bar", "label") or "tooltip-trigger" in value)):
                del element.attrib[name]
            elif name in _ROUNDED:
                element.set(name, f"{float(value):.1f}".removesuffix(".0"))
    root.set("role", "img")
    root.set("aria-label", shown(label))
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _is_taken_away(element: ElementTree.Element) -> bool:
    if element.tag == "desc":
        return _classes(element) != ["label"]
    if "bar" in _classes(element):
        return not any(_classes(one) == ["label"] for one in element)
    return element.tag in ("defs", "title") or not isinstance(element.tag, str) or "tooltip" in _classes(element)


def _classes(element: ElementTree.Element) -> list[str]:
    return element.get("class", "").split()


def _without_empty_groups(root: ElementTree.Element) -> bool:
    """Remove groups with nothing in them; return whether there was one."""
    empty = [(parent, child) for parent in root.iter() for child in parent if _is_empty(child)]
    for parent, child in empty:
        parent.remove(child)
    return bool(empty)


def _is_empty(element: ElementTree.Element) -> bool:
    """Return whether a group is empty, or the line of a label without text: only every so many steps have one."""
    if element.tag != "g":
        return False
    return not len(element) or ("guides" in _classes(element) and not any(one.text for one in element.iter("text")))
