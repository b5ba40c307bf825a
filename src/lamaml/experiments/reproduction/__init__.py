"""The tables and figures of the paper, by command.

scales      how much of the paper's protocol is run
cells       one run of the paper: its settings and the name of its folder
targets     the tables and figures, as lists of cells
request     which targets, at which scale and size
results     the numbers of one cell
claims      what the paper says in words
outcomes    the results of a target, stored as one JSON file
tables      the tables of outcomes
figures     the figures of outcomes
run         runs what is missing, and writes everything, also on one page
"""
