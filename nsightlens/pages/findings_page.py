"""The sections of `nsightlens summary` on findings: the verdict, and each finding with its figures and the command for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsightlens.pages import counter_sections
from nsightlens.pages.asked import Page
from nsightlens.pages.section import PARAGRAPH, Section, listed, more, some
from nsightlens.views.finding import Finding, findings_of, verdict_of

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_FEW = 8


def _found(asked: Page) -> list[Finding]:
    return findings_of(asked.ask("findings"), asked.store.values_of("run"))


def verdict(asked: Page) -> list[Section]:
    """Return what the run's first findings say, before anything else but that captures are cut."""
    cut = [row["file"] for row in asked.ask("profile_overview") if row["truncated"] and row["events_lost"] != 0]
    warning = [f"Warning: {some(cut)} {'is' if len(cut) == 1 else 'are'} cut short, and every figure lacks what was lost "
               "(see Diagnostics)."] if cut else []
    limits = counter_sections.limits(counter_sections.measured(asked))
    return [Section(lines=listed([*warning, *verdict_of(_found(asked)), *limits], PARAGRAPH))]


def findings(asked: Page) -> list[Section]:
    """Return what is worth a look: who, what, how much, why, what speaks against it, and the command that shows more."""
    found = _found(asked)
    return [Section("What to look at first", asked.note("findings"), (),
                    (*listed(map(sentence, found[:_FEW])), *more(len(found) - _FEW, "findings")))] if found else []


def sentence(finding: Finding) -> Text:
    """Return a finding in words."""
    tools = f"{finding.tool}, also under {' and '.join(finding.others)}" if finding.others else finding.tool
    facts = "; ".join(filter(None, (tools, finding.who, *finding.figures, f"confidence {finding.confidence}")))
    said = f"{finding.cause.replace('_', ' ')} ({facts}): {finding.what}. {finding.why} But: {finding.against}"
    return (f"{said} More: ", finding.command)
