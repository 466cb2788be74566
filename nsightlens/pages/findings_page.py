"""Findings as sentences: who, how much, what, why, what speaks against it, and the command that shows more."""

from __future__ import annotations

from collections.abc import Iterable

from nsightlens.views.finding_cards import Card, Row, cards


def sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each rule that fired, over the processes and tools that share it, in the order of the view."""
    return [_sentence(card) for card in cards(rows)]


def _sentence(card: Card) -> str:
    tools = f"{card.tool}, also under {' and '.join(card.others)}" if card.others else card.tool
    facts = "; ".join(filter(None, (tools, card.who, *card.figures, f"confidence {card.row['confidence']}")))
    return f"{card.rule.replace('_', ' ')} ({facts}): {card.what}. {card.why} But: {card.against} More: {card.more}"
