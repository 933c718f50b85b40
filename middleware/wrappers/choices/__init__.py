"""A model of several places, or of one with several keys: who is asked, and who then.

All is decided before the first event: what has begun stays where it is. Who is passed over is named
in the request's `Journey`, calls are recorded there by the guards of each place. At most three
calls are made for one ask, and pauses only when nobody is left who could be asked at once.
"""

from middleware.wrappers.choices.adapter import Choices, ChoiceSettings
from middleware.wrappers.choices.alternative import Alternative

__all__ = ("Alternative", "ChoiceSettings", "Choices")
