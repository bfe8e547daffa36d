"""Experiments: the demo, and the paper's figures and tables. Needs the extra `linearcore[reproduce]`."""
