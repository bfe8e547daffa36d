"""The report: one self-contained HTML page with all figures, claims and corrections, and a loss explorer."""

from linearcore_paper.report._page import write_report

__all__ = ["write_report"]
