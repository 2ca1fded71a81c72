"""A picture of a step: what computes above, what communicates below."""
from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import StrategyResult

_WIDTH, _LABEL, _LANE, _GAP = 720, 130, 16, 6
_COLOURS = {'forward': '#4c78a8', 'backward': '#72b7b2', 'optimizer': '#b279a2',
            'all-reduce': '#f58518', 'gather': '#e45756', 'reduce-scatter': '#f58518'}


def _bar(kind: str, start: float, end: float, top: float, scale: float, title: str) -> str:
    return (f'<rect x="{_LABEL + start * scale:.2f}" y="{top}" height="{_LANE}" '
            f'width="{max((end - start) * scale, 0.4):.2f}" fill="{_COLOURS[kind]}" '
            f'stroke="white" stroke-width="0.4"><title>{html.escape(title)}</title></rect>')


def _step(result: StrategyResult, top: float, scale: float) -> list[str]:
    """Two lanes. The passes stand where they end to end would; waiting shows as a gap before the
    optimizer."""
    forward = result.forward_ms
    backward = forward + result.backward_ms
    optimizer = max(backward, result.step_ms - result.optimizer_ms)
    parts = [f'<text x="0" y="{top + _LANE - 4}">{html.escape(result.label)}</text>']
    for kind, start, end in (('forward', 0.0, forward), ('backward', forward, backward),
                             ('optimizer', optimizer, result.step_ms)):
        if end > start:
            parts.append(_bar(kind, start, end, top, scale, f'{kind}: {end - start:.3f} ms'))
    below = top + _LANE + 1
    for bucket in result.buckets:
        if bucket.start_ms is None or bucket.end_ms is None:
            continue
        names = ', '.join(bucket.parameters[:2]) + (' ...' if len(bucket.parameters) > 2 else '')
        title = (f'bucket {bucket.index}, {bucket.bytes / 2**20:.2f} MiB: {bucket.start_ms:.3f} to '
                 f'{bucket.end_ms:.3f} ms ({names})')
        parts.append(_bar('all-reduce', bucket.start_ms, bucket.end_ms, below, scale, title))
    for unit in result.units:
        for sent in unit.collectives:
            start, end = float(sent['start_ms']), float(sent['end_ms'])
            kind = 'gather' if sent['operation'] == 'all-gather' else str(sent['operation'])
            title = (f'{sent["operation"]} of {unit.unit}, {sent["kind"].replace("_", " ")}: '
                     f'{start:.3f} to {end:.3f} ms')
            parts.append(_bar(kind if kind in _COLOURS else 'all-reduce', start, end, below, scale,
                              title))
    parts.append(f'<text x="{_LABEL + result.step_ms * scale + 4:.2f}" y="{top + _LANE - 4}">'
                 f'{result.step_ms:.2f} ms</text>')
    return parts


def svg(results: tuple[StrategyResult, ...]) -> str:
    """The steps below one another, on one scale."""
    if not results:
        return ''
    longest = max(result.step_ms for result in results)
    scale = (_WIDTH - _LABEL - 80) / longest if longest > 0 else 0.0
    height = len(results) * (2 * _LANE + 1 + _GAP) + 2 * _GAP + _LANE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
             'font-family="sans-serif" font-size="11" fill="currentColor" role="img" '
             'aria-label="timeline of each step">']
    top: float = _GAP
    for result in results:
        parts += _step(result, top, scale)
        top += 2 * _LANE + 1 + _GAP
    left: float = _LABEL
    sharded = any(result.units for result in results)
    for kind, colour in _COLOURS.items():
        if kind in ('gather', 'reduce-scatter') and not sharded:
            continue
        parts.append(f'<rect x="{left}" y="{top + 3}" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{left + 14}" y="{top + 12}">{kind}</text>')
        left += 90
    return '\n'.join([*parts, '</svg>'])


def table(rows: list[dict[str, object]]) -> str:
    """Rows of one kind as a table; numbers with as many digits as one reads."""
    if not rows:
        return ''

    def cell(value: object) -> str:
        if value is None:
            return '<td></td>'
        if isinstance(value, float):
            return f'<td style="text-align:right">{value:.6g}</td>'
        return f'<td>{html.escape(str(value))}</td>'

    head = ''.join(f'<th>{html.escape(str(name))}</th>' for name in rows[0])
    body = ''.join('<tr>' + ''.join(cell(row.get(name)) for name in rows[0]) + '</tr>'
                   for row in rows)
    return f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
