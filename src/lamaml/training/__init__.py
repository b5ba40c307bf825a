"""The training loop: tasks, epochs, glances, evaluation and checkpoints."""
