"""Charts of docs/posteriors.md as SVG: evaluations of both programs, and z-scores of log Z."""

import math
from xml.sax.saxutils import escape

OURS, THEIRS, GREY = "#0b6e99", "#c2571a", "#8a8a8a"
WIDTH, LEFT, ROW, TOP = 860, 190, 24, 64


def text(x, y, words, anchor="start", size=12, colour="#222222"):
    style = f'font-family="sans-serif" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#dddddd", width=1):
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def dot(x, y, colour, words, radius=5):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"><title>{escape(words)}</title></circle>'


def drawing(height, title, parts):
    size = f'width="{WIDTH}" height="{height}"'
    head = f'<svg {size} viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img">'
    ground = f'<rect {size} fill="#ffffff"/>'
    title = [f"<title>{escape(title)}</title>", ground, text(12, 24, title, size=14)]
    return "\n".join([head, *title, *parts, "</svg>"]) + "\n"


def pairs(title, rows):
    """A line for each posterior: (name, sterna's evaluations, those of NUTS or None), on a logarithmic axis."""
    numbers = [n for _, ours, theirs in rows for n in (ours, theirs) if n]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    bottom = TOP + ROW * len(rows)

    def place(n):
        return LEFT + (WIDTH - LEFT - 30) * (math.log10(n) - low) / (high - low)

    parts = [dot(LEFT, 42, OURS, "sterna"), text(LEFT + 10, 46, "sterna"), dot(LEFT + 80, 42, THEIRS, "NUTS")]
    parts.append(
        text(LEFT + 90, 46, "Stan's NUTS; evaluations of log density and gradient, tuning and warm-up counted")
    )
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts += [line(x, TOP, x, bottom), text(x, bottom + 16, f"{10**power:,}", "middle", 11)]
    for row, (name, ours, theirs) in enumerate(rows):
        y = TOP + ROW * (row + 0.5)
        parts.append(text(LEFT - 10, y + 4, name, "end"))
        if ours and theirs:
            parts.append(line(place(ours), y, place(theirs), y, GREY, 2))
        for n, colour, who in ((ours, OURS, "sterna"), (theirs, THEIRS, "NUTS")):
            if n:
                parts.append(dot(place(n), y, colour, f"{name}, {who}: {n:,} evaluations"))
    return drawing(bottom + 30, title, parts)


def strips(title, rows):
    """A strip of z-scores for each target: (name, z-scores)."""
    bottom = TOP + 36 * len(rows)

    def place(z):
        return LEFT + (WIDTH - LEFT - 30) * (max(-5.0, min(5.0, z)) + 5) / 10

    words = "(estimate − truth) / its own standard error, one dot a seed; beyond ±5 at the edge"
    parts = [text(LEFT, 46, words, size=11)]
    for z in range(-5, 6):
        parts += [line(place(z), TOP, place(z), bottom), text(place(z), bottom + 16, f"{z:+d}", "middle", 11)]
    for row, (name, scores) in enumerate(rows):
        y = TOP + 36 * (row + 0.5)
        parts.append(text(LEFT - 10, y + 4, name, "end"))
        for i, z in enumerate(sorted(scores)):
            parts.append(dot(place(z), y - 8 + 4 * (i % 5), OURS, f"{name}: {z:+.2f}", 3))
    return drawing(bottom + 30, title, parts)
