"""What a run leaves on disk: folders, results, checkpoints and locks."""
