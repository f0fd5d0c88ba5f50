"""Keys that are nearly the name of a field which bounds a run: taken for a typing error instead of dropped.

Other unknown keys are dropped, so that a file of a later version can be read; but whoever mistypes one of these
believes in a bound that is not there (docs/reference/triggers.md).
"""

import re
from typing import Final

_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9]")
_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^ -~]")
#: Letters and digits that must be left of a key with foreign characters before it is compared.
_ENOUGH: Final = 4

#: The spellings of each field: lower case, without anything but letters and digits.
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "waitFor": ("waitfor",),
    "backend": ("backend", "backends"),
    "excludeTools": ("excludetools", "excludetool", "excludedtools"),
    "provider": ("provider", "providers", "providerid", "providerids", "providername"),
    "model": ("model", "modelid", "modelname"),
    "models": ("models", "modelids", "modelnames", "allowedmodel", "allowedmodels"),
    "maxTurns": ("maxturn", "maxturns"),
    "maxCostUsd": ("maxcost", "maxcostusd"),
    "maxTokens": ("maxtoken", "maxtokens"),
    "missed": ("missed",),
}
#: Those whose foreign look-alikes are refused too.
_GUARDED: Final = frozenset(SPELLINGS) - {"waitFor"}


def meant(key: str, exact: frozenset[str]) -> str | None:
    """The field that `key` is nearly the name of; `None` for one of `exact`, and for a key that is like none."""
    if key in exact:
        return None
    plain = _OUTSIDE.sub("", key).lower()
    for field, spellings in SPELLINGS.items():
        if plain in spellings:
            return field
    if not _NOT_PRINTABLE_ASCII.search(key) or len(plain) < _ENOUGH:
        return None
    return next(
        (
            field
            for field, spellings in SPELLINGS.items()
            if field in _GUARDED and any(_within(plain, spelling) for spelling in spellings)
        ),
        None,
    )


def _within(part: str, whole: str) -> bool:
    """Whether the letters of `part` stand in `whole` in this order, as where look-alikes took the place of others."""
    rest = iter(whole)
    return all(letter in rest for letter in part)
