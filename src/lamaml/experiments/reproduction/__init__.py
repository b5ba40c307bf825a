"""The paper's tables and figures, by command.

scales      what is run in place of the paper's protocol, where that is too long
cells       one run of the paper: its settings, its size, and the name of its folder
targets     the tables and figures, as lists of cells
outcomes    what was found, as one small JSON object a target
claims      what the paper says in words
tabulation  its tables
drawings    its figures
pages       all of it on one page
estimates   how long it will take
reproduce   all of it, one after the other
"""
