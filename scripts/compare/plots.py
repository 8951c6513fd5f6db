"""Charts of docs/comparison.md as SVG."""

import math

from charts import LEFT, ROW, TOP, WIDTH, dot, drawing, line, text

COLOURS = ["#0b6e99", "#5aa9c9", "#9fcfe0", "#34519c", "#c2571a", "#7a4fa3", "#3f8f4f", "#b8860b", "#8a8a8a", "#c06a9a"]


def costs(title, rows):
    """A line for each case, a dot for each program, on a logarithmic axis: {case: {program: cost or None}}."""
    programs = list(dict.fromkeys(program for row in rows.values() for program in row))
    numbers = [n for row in rows.values() for n in row.values() if n]
    low, high = (math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))) if numbers else (0, 1)
    bottom = TOP + ROW * len(rows)

    def place(n):
        return LEFT + (WIDTH - LEFT - 30) * (math.log10(n) - low) / (high - low)

    parts, x = [], 20
    for program, colour in zip(programs, COLOURS, strict=False):
        parts += [dot(x, 42, colour, program), text(x + 8, 46, program, size=11)]
        x += 24 + 6.2 * len(program)
    for power in range(low, high + 1):
        parts += [
            line(place(10.0**power), TOP, place(10.0**power), bottom),
            text(place(10.0**power), bottom + 16, f"10^{power}", "middle", 11),
        ]
    for i, (name, row) in enumerate(rows.items()):
        y = TOP + ROW * (i + 0.5)
        parts += [text(LEFT - 10, y + 4, name, "end"), line(LEFT, y, WIDTH - 30, y)]
        for program, colour in zip(programs, COLOURS, strict=False):
            if row.get(program):
                parts.append(dot(place(row[program]), y, colour, f"{name}, {program}: {row[program]:,.0f}"))
    return drawing(bottom + 30, title, parts)
