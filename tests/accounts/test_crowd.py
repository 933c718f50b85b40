"""A full gateway: who still comes in."""

from __future__ import annotations

import pytest

from adapters.errors import Busy
from middleware.accounts.crowd import Crowd


def entered(crowd: Crowd, owner: str, times: int, most: int = 8) -> int:
    """How many of so many requests are let in."""
    count = 0
    for number in range(times):
        try:
            crowd.enter(f"{owner} {number} of {times}", owner, most)
            count += 1
        except Busy:
            pass
    return count


def test_one_client_alone_has_all_places() -> None:
    assert entered(Crowd(), "a", 12) == 8


@pytest.mark.parametrize(("others", "let_in"), [(["b"], [4]), (["b", "c"], [4, 2])])
def test_a_client_holds_its_share_once_the_gateway_is_full(
    others: list[str], let_in: list[int]
) -> None:
    crowd = Crowd()
    entered(crowd, "a", 12)
    assert [entered(crowd, other, 12) for other in others] == let_in


def test_who_has_more_than_its_share_gets_none_back_while_it_is_full() -> None:
    crowd = Crowd()
    entered(crowd, "a", 12)
    entered(crowd, "b", 2)
    crowd.leave("a 0 of 12")
    assert entered(crowd, "a", 1) == 0
    for number in range(1, 4):
        crowd.leave(f"a {number} of 12")
    assert entered(crowd, "a", 3) == 2


def test_twice_the_limit_is_the_end_and_all_places_come_back() -> None:
    crowd = Crowd()
    assert sum(entered(crowd, f"client {number}", 8) for number in range(40)) == 16
    for number in range(40):
        for one in range(8):
            crowd.leave(f"client {number} {one} of 8")
    crowd.leave("a request that was never let in")
    assert crowd == Crowd()
