"""The paper's tables and figures, by command.

scales      what is run in place of the paper's protocol, where that is too long
cells       one run of the paper: its settings, its size, and the name of its folder
targets     the tables and figures, as lists of cells
outcomes    what was found, as one small JSON object a target
verdicts    ours beside the paper's
claims      what the paper says in words
grids       a table for the terminal, in Markdown, LaTeX and CSV
drawings    a figure for the page, as SVG and PDF
estimates   how long it will take
reproduce   all of it, one after the other
"""
