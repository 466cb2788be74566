"""Arrow tables of a store -> one offline HTML file: no request, readable without JavaScript in its first part."""

from __future__ import annotations

from nsightlens.html_report.report import Report, report

__all__ = ["Report", "report"]
