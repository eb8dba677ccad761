"""Numbers as people type them: limits ("<0.5"), units ("5 mg"), thousands, decimal commas, and codes for "missing"."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..words import listed

#: Most of a column's cells must be numbers for the others to be taken for missing values; if there are this many
#: different numbers, fewer suffice.
FEW_WORDS, MANY_WORDS, MANY_NUMBERS = 0.05, 0.2, 10
#: A column more of whose numbers carry a sign than this ("<50", ">=50") holds bands, not measurements.
MOST_LIMITS = 0.5
_NUMBER = re.compile(
    r"\s*(?P<limit>[<>≤≥~≈]=?|ca\.?|approx\.?)?\s*"
    r"(?P<number>[-+−]?(?:\d[\d.,'’ \u00a0\u2009]*|[.,]\d+)(?:[eE][-+]?\d+)?)"
    r"\s*(?P<unit>(?:[^\W\d_]|[%°µ‰$€£])(?:[^\n<>=]{0,19}))?\s*"
)
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")

#: Values that stand for "missing" in many tables, where they lie far from all others.
CODES = tuple(float(sign + digit * k) for k in range(1, 7) for digit in "98" for sign in ("", "-") if k > 1 or sign)
#: Distance of such a code from the other values, in units of their range.
FAR = 1.0
#: A value this many times as far from the median as this share of the column is no measurement.
ABSURD, USUAL = 1e6, 0.75
#: Zeros may stand for "missing" where the next value is this large, and this large a share of the median.
NEXT_TO_ZERO, SHARE_OF_MEDIAN = 5.0, 0.1


class Numbers(NamedTuple):
    """A column read as numbers.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The numbers, nan where a cell is missing or not a number.
    words : ndarray of bool
        Which cells are neither missing nor a number.
    limits : ndarray of bool
        Which cells are limits such as "<0.5"; the limit itself is their value.
    units : dict of str to int
        How many cells carry which unit.
    """

    values: NDArray[np.float64]
    words: NDArray[np.bool_]
    limits: NDArray[np.bool_]
    units: dict[str, int]


def as_numbers(column: pd.Series) -> Numbers:
    """Read a column's cells as numbers, one by one; cells in a rarer unit count as words."""
    plain = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    none = np.zeros(len(column), dtype=bool)
    doubtful = np.flatnonzero(np.isnan(plain) & column.notna().to_numpy())
    if not doubtful.size:
        return Numbers(plain, none, none, {})
    texts = column.iloc[doubtful].astype(str)
    read = {text: _read(text) for text in texts.unique()}
    comma = _is_decimal_comma([r[1] for r in read.values() if r])
    values, words, limits = plain.copy(), none.copy(), none.copy()
    units = texts.map(lambda text: (read[text] or ("", "", ""))[2]).to_numpy()
    named = pd.Series(units[units != ""], dtype=object).value_counts()
    for at, text, unit in zip(doubtful, texts, units):
        found = read[text]
        number = None if found is None else _number(found[1], comma)
        if found is None or number is None or (unit and unit != named.index[0]):
            words[at] = True
        else:
            values[at], limits[at] = number, found[0] not in {"", "~", "≈"}
    return Numbers(values, words, limits, {str(k): int(v) for k, v in named.items()})


def are_numbers(numbers: Numbers) -> bool:
    """Tell whether a column is a measurement: nearly all cells are numbers, and most of them plain ones."""
    present = int(np.sum(~np.isnan(numbers.values)) + numbers.words.sum())
    if not present or numbers.words.sum() == present:
        return False
    several = np.unique(numbers.values[~np.isnan(numbers.values)]).size >= MANY_NUMBERS
    # Codes such as 2a, 2b, 3a are not numbers with units.
    one_unit = len(numbers.units) <= 1 or max(numbers.units.values()) >= 0.8 * sum(numbers.units.values())
    few_words = numbers.words.mean() * len(numbers.words) / present <= (MANY_WORDS if several else FEW_WORDS)
    return bool(few_words and one_unit and numbers.limits.sum() <= MOST_LIMITS * present)


def number_notes(column: pd.Series, numbers: Numbers) -> list[str]:
    """Say what was read between the lines of a column."""
    notes = []
    if numbers.limits.any():
        cells = column[numbers.limits].astype(str).unique().tolist()
        notes.append(f"{_cells(numbers.limits.sum())} such as {listed(cells[:1])} read as the limit itself")
    if numbers.units:
        unit, count = next(iter(numbers.units.items()))
        notes.append(f"the unit {listed([unit])} in {count} of the cells is left aside")
    if numbers.words.any():
        cells = column[numbers.words].astype(str).unique().tolist()
        notes.append(f"{_cells(numbers.words.sum())} without a number ({listed(cells, 3)}) taken as missing")
    return notes


def missing_codes(values: NDArray[np.float64]) -> list[float]:
    """Return the values that cannot be measurements: absurdly large ones, and codes such as 999 far from all others."""
    found: list[float] = []
    present = np.sort(values[np.isfinite(values)])
    if np.unique(present).size < 3:
        return found
    with np.errstate(over="ignore"):
        centre = present[present.size // 2]
        distance = np.abs(present - centre)
        usual = np.quantile(distance, USUAL) or np.max(distance[distance < ABSURD], initial=0.0)
    absurd = present[distance > ABSURD * max(usual, 1e-300)] if usual else present[:0]
    found += np.unique(absurd).tolist()
    present = present[~np.isin(present, absurd)]
    for code in CODES:
        others = present[present != code]
        if others.size == present.size or np.unique(others).size < 3 or _is_count(others, code):
            continue
        span = float(others[-1] - others[0])
        gap = max(code - others[-1], others[0] - code)
        if gap > FAR * span or (code < 0 <= others[0] and (present == code).sum() > 1 and abs(code) >= 9):
            found.append(code)
            present = others
    return found


def doubtful_zeros(values: NDArray[np.float64]) -> int:
    """Return how many zeros stand apart from all other values, so that they may mean "missing"; 0 if none does."""
    present = values[np.isfinite(values)]
    positive = present[present != 0]
    zeros = present.size - positive.size
    if zeros < 2 or np.unique(positive).size < MANY_NUMBERS or positive.min() < NEXT_TO_ZERO:
        return 0
    return zeros if positive.min() >= SHARE_OF_MEDIAN * np.median(positive) else 0


def _is_count(others: NDArray[np.float64], code: float) -> bool:
    """Tell whether a code is just the next whole number, as -1 after 0, 1, 2 or 9 after 8."""
    return bool(np.any(np.abs(others - code) <= 1.0))


def _read(text: str) -> tuple[str, str, str] | None:
    """Split a cell into limit, number and unit; None if it is none of that."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number = re.sub(r"['’ \u00a0\u2009]", "", match["number"]).replace("−", "-")
    return match["limit"] or "", number, (match["unit"] or "").strip()


def _is_decimal_comma(numbers: list[str]) -> bool:
    """Tell whether a column writes 0,5 for a half: commas occur, not all between thousands, and no lone point."""
    commas = [n for n in numbers if "," in n]
    return bool(commas) and not all(_THOUSANDS.fullmatch(n) for n in commas)


def _number(text: str, comma: bool) -> float | None:
    if comma:
        text = text.replace(".", "").replace(",", ".") if "," in text else text
    elif _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    return float(text) if _PLAIN.fullmatch(text) else None


def _cells(n: int) -> str:
    return "1 cell" if n == 1 else f"{n} cells"
