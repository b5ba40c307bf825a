"""The panel: our estimators beside what one would use instead, over streams of many kinds."""
