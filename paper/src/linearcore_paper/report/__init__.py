"""The report: one HTML page with every figure, claim and correction, and a loss explorer; it needs no network."""

from linearcore_paper.report._page import write_report

__all__ = ["write_report"]
