"""The paper, re-run: experiments, figures and report, the image trainer, the demo. Uses public names of linearcore only."""
