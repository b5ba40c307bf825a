"""Training a learner on a stream: the loop, its checkpoints, random keys and compiled programs."""

from lamaml.training.checkpoint import Checkpoint
from lamaml.training.loop import train
from lamaml.training.schedule import Schedule

__all__ = ["Checkpoint", "Schedule", "train"]
