"""Printed figures of Goldberg and Eckstein, Tightened L0-relaxation penalties for classification (2009)."""

from __future__ import annotations

from ..experiment import Paper, Published

PAPER = Paper(
    "Noam Goldberg and Jonathan Eckstein",
    "Tightened L0-relaxation penalties for classification",
    2009,
    "DIMACS technical report 2009-21",
)

DATASETS = ("bcw", "vote", "clvheart", "huheart", "sonar")

# method, K, then accuracy and number of rules on each data set; - where nothing is printed
_TABLE1 = """
l0      1 .963 9.1  .950 6.0 .846 10.3 .812 10.4 .712 7.2
l0      5 .950 9.4  .960 3.0 .833 38.9 .807 27.4 .725 21.3
lp      1 .925 3.8  .957 2   .774 7.6  .803 3.8  .735 8.6
lp      5 .937 5.5  .957 2.1 .810 25.3 .797 11.2 .734 30.8
slipper - .959 19.5 .952 3.9 .802 14   .802 14.7 .674 18.8
slipper-cohen-singer-1999          - .958 - -    - .752 -    .806 - .745 -
lpboost-stumps-demiriz-et-al-2002  - .966 - -    - .795 70.8 -    - .870 85.7
lpboost-c4.5-demiriz-et-al-2002    - .959 - .959 - .791 -    -    - .817 -
"""


def _table1() -> list[Published]:
    printed = []
    for line in _TABLE1.strip().splitlines():
        method, order, *numbers = line.split()
        for i, dataset in enumerate(DATASETS):
            setting: dict[str, str | int] = {"dataset": dataset, "method": method}
            if order != "-":
                setting["K"] = int(order)
            for measure, number in zip(("accuracy", "rules"), numbers[2 * i : 2 * i + 2]):
                if number != "-":
                    printed.append(Published(setting, measure, float(number)))
    return printed


TABLE1 = _table1()
