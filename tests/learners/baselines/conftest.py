"""The toy problems of the folder above are this folder's too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
