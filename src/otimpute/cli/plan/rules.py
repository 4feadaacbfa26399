"""What is said of derived columns: equations and relations, by column or as a list."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

_TARGET = re.compile(r"\s*(?:`([^`]+)`|([^\W\d]\w*))\s*=(?!=)")


def targets_of(rules: Mapping[str, str] | Sequence[str]) -> set[str]:
    """Return the columns that rules compute.

    >>> sorted(targets_of(["total = a + b", "start <= end", "`net income` = income - tax"]))
    ['net income', 'total']
    """
    if isinstance(rules, Mapping):
        return set(rules)
    return {match[1] or match[2] for rule in rules if (match := _TARGET.match(rule))}


def rules_without(rules: Mapping[str, str] | Sequence[str], targets: Collection[str]) -> list[str]:
    """Return rules as a list, without those that compute some columns.

    >>> rules_without({"total": "a + b", "net": "total - tax"}, ["net"])
    ['`total` = a + b']
    """
    listed = [f"`{name}` = {formula}" for name, formula in rules.items()] if isinstance(rules, Mapping) else list(rules)
    return [rule for rule in listed if not targets_of([rule]) & set(targets)]
