"""How runs are carried out: plans, worker processes, seeds and the console."""
