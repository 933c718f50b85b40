"""Units of measure."""

from typing import Literal

_METRES = {
    "mm": 0.001,
    "cm": 0.01,
    "m": 1.0,
    "km": 1000.0,
    "in": 0.0254,
    "ft": 0.3048,
    "mi": 1609.344,
}
_GRAMS = {"g": 1.0, "kg": 1000.0, "oz": 28.349523125, "lb": 453.59237}

Unit = Literal["mm", "cm", "m", "km", "in", "ft", "mi", "g", "kg", "oz", "lb", "C", "F", "K"]


def convert_unit(value: float, source: Unit, target: Unit) -> float:
    """Convert a length, a weight or a temperature.

    Args:
        value: How much of the source.
        source: The unit it is in.
        target: The unit it is wanted in.
    """
    for factors in (_METRES, _GRAMS):
        if source in factors and target in factors:
            return value * factors[source] / factors[target]
    if source in "CFK" and target in "CFK":
        return _from_celsius(_celsius(value, source), target)
    raise ValueError(f"{source} cannot become {target}")


def _celsius(value: float, unit: str) -> float:
    return {"C": value, "F": (value - 32) / 1.8, "K": value - 273.15}[unit]


def _from_celsius(value: float, unit: str) -> float:
    return {"C": value, "F": value * 1.8 + 32, "K": value + 273.15}[unit]
