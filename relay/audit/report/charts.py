"""Charts as inline SVG. Colours and fonts are the page's; every mark has its value in a title, and a table says the same."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from relay.audit.report.content import Bars, Chart, Columns, OverTime, Shares, Unit
from relay.audit.report.text import count, markup, moment, share, shown, size, span, utc

_WIDTH: Final = 760
_LEFT: Final = 64
_LABEL: Final = 230
_MOST_BARS: Final = 20
_MOST_COLUMNS: Final = 240
_SERIES: Final = 6
_HEIGHT: Final = 200
_ROW: Final = 26


def svg(chart: Chart) -> str:
    """The chart as a figure, or a sentence where there is nothing to draw."""
    if isinstance(chart, Bars):
        drawn = _bars(chart)
    elif isinstance(chart, Columns):
        drawn = _columns(chart)
    elif isinstance(chart, OverTime):
        drawn = _over_time(chart)
    else:
        drawn = _shares(chart)
    body = drawn or '<p class="none">There is nothing to draw.</p>'
    return f"<figure><figcaption>{markup(chart.title)}</figcaption>{body}</figure>"


def _value_text(value: float, unit: Unit) -> str:
    return {"bytes": size, "seconds": span, "count": count}[unit](value)


def _frame(height: float, inner: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{markup(label)}" '
        f'preserveAspectRatio="xMinYMin meet">{inner}</svg>'
    )


def _short(label: str, longest: int) -> str:
    text = shown(label)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _bars(chart: Bars) -> str:
    values = [(label, value) for label, value in chart.values if value > 0]
    if not values:
        return ""
    kept = values if len(values) <= _MOST_BARS else values[: _MOST_BARS - 1]
    rest = sum(value for _, value in values[len(kept) :])
    if rest:
        kept = [*kept, (f"{len(values) - len(kept)} others", rest)]
    most = max(value for _, value in kept)
    room = _WIDTH - _LABEL - 110
    parts = []
    for row, (label, value) in enumerate(kept):
        y = row * _ROW
        length = max(value / most * room, 1.5)
        hover = markup(_value_text(value, chart.unit))
        parts.append(
            f"<g><title>{markup(label)}: {hover}</title>"
            f'<text class="label" x="{_LABEL - 8}" y="{y + 17}" text-anchor="end">{markup(_short(label, 34))}</text>'
            f'<rect class="s0" x="{_LABEL}" y="{y + 4}" width="{length:.1f}" height="{_ROW - 8}" rx="2"/>'
            f'<text class="value" x="{_LABEL + length + 6:.1f}" y="{y + 17}">{hover}</text></g>'
        )
    return _frame(len(kept) * _ROW + 4, "".join(parts), chart.title)


def _scale(most: float, unit: Unit) -> tuple[float, list[float]]:
    """A round top that is not below `most`, and the values at which lines are drawn."""
    if most <= 0:
        return 1.0, [0.0]
    base = 1024.0 if unit == "bytes" else 10.0
    power = base ** math.floor(math.log(most, base))
    steps: Sequence[float] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if unit == "bytes" else (1, 2, 2.5, 5, 10)
    top = next((step * power for step in steps if step * power >= most), most)
    if unit == "count" and top < 4:
        return float(math.ceil(most)), [float(line) for line in range(math.ceil(most) + 1)]
    return top, [top * quarter / 4 for quarter in range(5)]


def _axis(top: float, lines: list[float], unit: Unit) -> str:
    parts = []
    for line in lines:
        y = 8 + _HEIGHT * (1 - line / top)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="value" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{markup(_value_text(line, unit))}</text>'
        )
    return "".join(parts)


def _columns(chart: Columns) -> str:
    if not any(value > 0 for _, value in chart.values):
        return ""
    top, lines = _scale(max(value for _, value in chart.values), chart.unit)
    room = (_WIDTH - 8 - _LEFT) / len(chart.values)
    parts = [_axis(top, lines, chart.unit)]
    every = math.ceil(len(chart.values) / 14)
    for place, (label, value) in enumerate(chart.values):
        x = _LEFT + place * room
        height = max(value / top * _HEIGHT, 1.5) if value else 0
        parts.append(
            f"<g><title>{markup(label)}: {markup(_value_text(value, chart.unit))}</title>"
            f'<rect class="hit" x="{x:.1f}" y="8" width="{room:.1f}" height="{_HEIGHT}"/>'
            f'<rect class="s0" x="{x + room * 0.08:.1f}" y="{8 + _HEIGHT - height:.1f}" width="{room * 0.84:.1f}" '
            f'height="{height:.1f}" rx="1.5"/></g>'
        )
        if place % every == 0:
            middle = x + room / 2
            parts.append(
                f'<text class="value" x="{middle:.1f}" y="{_HEIGHT + 25}" text-anchor="middle">'
                f"{markup(_short(label, 14))}</text>"
            )
    return _frame(_HEIGHT + 32, "".join(parts), chart.title)


def time_step(first: datetime, last: datetime) -> int:
    """Seconds of a column so that a chart from `first` to `last` has a readable number of them."""
    seconds = max((last - first).total_seconds(), 1)
    for step in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400, 604800):
        if seconds / step <= 120:
            return step
    return max(math.ceil(seconds / 120 / 86400) * 86400, 604800)


def _over_time(chart: OverTime) -> str:
    points = [utc(time) for series in chart.series.values() for time, _ in series]
    if not points:
        return ""
    first, last = min(points), max(points)
    step = chart.step_s
    slots = int((last - first).total_seconds() // step) + 1
    fold = math.ceil(slots / _MOST_COLUMNS)
    step *= fold
    slots = math.ceil(slots / fold)
    heights = [[0.0] * len(chart.series) for _ in range(slots)]
    for number, series in enumerate(chart.series.values()):
        for time, value in series:
            heights[int((utc(time) - first).total_seconds() // step)][number] += value
    top, lines = _scale(max(sum(slot) for slot in heights), chart.unit)
    room = (_WIDTH - 8 - _LEFT) / slots
    width = max(room * 0.86, 0.8) if slots > 1 else 40
    parts = [_axis(top, lines, chart.unit)]
    for place, slot in enumerate(heights):
        if not any(slot):
            continue
        x = _LEFT + place * room
        hover = [f"{moment(first + timedelta(seconds=place * step))} UTC"]
        rects = []
        y = 8.0 + _HEIGHT
        for number, (name, value) in enumerate(zip(chart.series, slot, strict=True)):
            if not value:
                continue
            hover.append(f"{name}: {_value_text(value, chart.unit)}")
            height = max(value / top * _HEIGHT, 0.8)
            y -= height
            rects.append(
                f'<rect class="s{number % _SERIES}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            )
        hit = f'<rect class="hit" x="{x:.1f}" y="8" width="{room:.1f}" height="{_HEIGHT}"/>'
        parts.append(f"<g><title>{markup(', '.join(hover))}</title>{hit}{''.join(rects)}</g>")
    parts.append(_time_labels(first, step, slots, room))
    legend = _legend([(name, "") for name in chart.series]) if len(chart.series) > 1 else ""
    return legend + _frame(_HEIGHT + 32, "".join(parts), chart.title)


def _time_labels(first: datetime, step: int, slots: int, room: float) -> str:
    days = slots * step > 3 * 86400
    shape = "%Y-%m-%d" if days else "%m-%d %H:%M" if step >= 60 else "%H:%M:%S"
    parts = []
    every = max(math.ceil(slots / 6), 1)
    for place in range(0, slots, every):
        time = first + timedelta(seconds=place * step)
        x = _LEFT + place * room
        parts.append(f'<text class="value" x="{x:.1f}" y="{_HEIGHT + 25}">{time.strftime(shape)}</text>')
    return "".join(parts)


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><span class="swatch b{number % _SERIES}"></span>{markup(name, 60)}{" " + markup(hover) if hover else ""}</li>'
        for number, (name, hover) in enumerate(entries)
    )
    return f'<ul class="legend">{items}</ul>'


def _shares(chart: Shares) -> str:
    values = [(label, value) for label, value in chart.values if value > 0]
    whole = sum(value for _, value in values)
    if not whole:
        return ""
    if len(values) > _SERIES:
        rest = sum(value for _, value in values[_SERIES - 1 :])
        values = [*values[: _SERIES - 1], (f"{len(values) - _SERIES + 1} others", rest)]
    x = 0.0
    parts = []
    for number, (label, value) in enumerate(values):
        width = value / whole * _WIDTH
        hover = f"{label}: {_value_text(value, chart.unit)}, {share(value, whole)}"
        parts.append(
            f'<g><title>{markup(hover)}</title><rect class="s{number}" x="{x:.1f}" y="2" '
            f'width="{max(width - 1.5, 0.8):.1f}" height="26" rx="2"/></g>'
        )
        x += width
    entries = [(label, f"{_value_text(value, chart.unit)}, {share(value, whole)}") for label, value in values]
    return _frame(30, "".join(parts), chart.title) + _legend(entries)
