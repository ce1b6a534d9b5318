"""The generic cell rate algorithm, compared with a plain model, and its memory of many callers."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.rate_limit import Gcra, KeyedGcra

NOW = 1_795_000_000_000
RULES = st.builds(Gcra, st.integers(1, 7_000), st.sampled_from([1_450, SECOND, MINUTE, HOUR]), st.integers(1, 200))


class Bucket:
    """The model: a leaky bucket in exact fractions.

    Each call adds a drop, `burst` drops fit, and `number / window` leak a ms.
    """

    def __init__(self, rule: Gcra) -> None:
        self.leak = Fraction(rule.number, rule.window)
        self.size = rule.capacity // rule.window
        self.level = Fraction(0)
        self.at = 0

    def free(self, now: int) -> Fraction:
        self.level = max(Fraction(0), self.level - (now - self.at) * self.leak)
        self.at = now
        return self.size - self.level

    def ask(self, now: int) -> bool:
        if self.free(now) < 1:
            return False
        self.level += 1
        return True


@given(RULES, st.lists(st.integers(0, 20_000) | st.just(0), max_size=300))
def test_it_is_a_leaky_bucket(rule: Gcra, pauses: list[int]) -> None:
    """For any rate and any times, it admits the same calls as the bucket, to the millisecond."""
    bucket, tat, now = Bucket(rule), 0, NOW
    bucket.at = NOW
    for pause in pauses:
        now += pause
        free = bucket.free(now)
        standing = rule.standing(tat, now)
        assert standing.remaining == int(free)
        missing = standing.remaining + 1 - free
        assert standing.until_next == -(-missing // bucket.leak)
        after = rule.spend(tat, now)
        assert (after is not None) == bucket.ask(now)
        if after is None:
            assert rule.spend(tat, now + standing.until_next - 1) is None
            assert rule.spend(tat, now + standing.until_next) is not None
        else:
            tat = after


@given(RULES, st.lists(st.integers(0, 5_000), max_size=100))
def test_forgetting_after_a_lifetime_changes_nothing(rule: Gcra, pauses: list[int]) -> None:
    """After its lifetime without a call, a caller has its whole burst again, like a new caller."""
    tat, now = 0, NOW
    for pause in pauses:
        now += pause
        tat = rule.spend(tat, now) or tat
    later = now + rule.lifetime
    assert rule.standing(tat, later) == rule.standing(0, later)
    assert rule.spend(tat, later) == rule.spend(0, later)


@pytest.mark.parametrize("back", [MINUTE, HOUR, 400 * 24 * HOUR])
def test_a_clock_that_is_set_back_refuses_no_caller_for_long(back: int) -> None:
    """A caller that was counted an hour ahead of the clock would otherwise be refused for that hour."""
    keyed = KeyedGcra(Gcra(1, 1_450, 10))
    while keyed.spend("ada", NOW):
        pass
    earlier = NOW - back
    let_in = sum(keyed.spend("ada", earlier + second * SECOND) for second in range(60))
    assert 40 <= let_in <= 51


class Memory(RuleBasedStateMachine):
    """Callers of any frequency, in a memory that is never full: no caller is forgotten too early."""

    def __init__(self) -> None:
        super().__init__()
        rule = Gcra(3, SECOND, 4)
        self.keyed = KeyedGcra(rule, keys=1_000)
        self.models: dict[str, Bucket] = {}
        self.now = NOW

    def model(self, key: str) -> Bucket:
        if key not in self.models:
            self.models[key] = Bucket(self.keyed.rule)
            self.models[key].at = self.now
        return self.models[key]

    @rule(pause=st.integers(0, 3_000))
    def time_passes(self, pause: int) -> None:
        self.now += pause

    @rule(key=st.sampled_from("abcdef"))
    def spend(self, key: str) -> None:
        assert self.keyed.spend(key, self.now) == self.model(key).ask(self.now)

    @rule(key=st.sampled_from("abcdef"))
    def spend_again(self, key: str) -> None:
        spent = self.keyed.spend_again(key, self.now)
        model = self.model(key)
        if spent is None:
            assert model.free(self.now) == model.size
        else:
            assert spent == model.ask(self.now)

    @rule(key=st.sampled_from("abcdef"))
    def charge(self, key: str) -> None:
        self.keyed.charge(key, self.now)
        model = self.model(key)
        if not model.ask(self.now):
            model.level = Fraction(model.size)

    @rule(key=st.sampled_from("abcdef"))
    def spend_and_give_back(self, key: str) -> None:
        before = self.keyed.standing(key, self.now)
        if self.keyed.spend(key, self.now):
            self.keyed.give_back(key, self.now)
        assert self.keyed.standing(key, self.now) == before

    @precondition(lambda self: self.models)
    @invariant()
    def standings_agree(self) -> None:
        for key, model in self.models.items():
            assert self.keyed.standing(key, self.now).remaining == int(model.free(self.now))


TestMemory: Any = Memory.TestCase


@given(st.integers(1, 50), st.lists(st.integers(0, 200), max_size=500))
def test_memory_is_bounded_whoever_makes_up_keys(keys: int, made_up: list[int]) -> None:
    """At most two generations of keys are kept, whether or not their calls are admitted."""
    keyed = KeyedGcra(Gcra(1, HOUR, 2), keys=keys)
    for number in made_up:
        keyed.spend(number, NOW)
        assert len(keyed) <= 2 * keys


def test_what_was_made_up_is_dropped_when_its_time_is_over() -> None:
    """The memory of a flood is freed when the next callers come."""
    keyed = KeyedGcra(Gcra(60, MINUTE, 60), keys=1_000)
    for number in range(900):
        keyed.spend(number, NOW)
    keyed.spend("ada", NOW + MINUTE)
    keyed.spend("grace", NOW + 2 * MINUTE)
    assert len(keyed) == 2


def test_made_up_keys_do_not_reset_a_caller_that_continues() -> None:
    """A caller that is refused at each of its calls stays refused, even if a flood of keys fills the memory."""
    keyed = KeyedGcra(Gcra(1, HOUR, 2), keys=10)
    assert [keyed.spend("ada", NOW) for _ in range(3)] == [True, True, False]
    for number in range(1_000):
        assert keyed.spend(number, NOW)
        if number % 9 == 0:
            assert not keyed.spend("ada", NOW)


def test_a_reset_costs_two_memories_of_callers() -> None:
    """Fewer than two generations of admitted callers reset no caller."""
    keyed = KeyedGcra(Gcra(1, HOUR, 2), keys=10)
    while keyed.spend("ada", NOW):
        pass
    others = 0
    while keyed.standing("ada", NOW).remaining == 0:
        others += keyed.spend(f"made up {others}", NOW)
    assert others >= 2 * 10 - 1


def test_a_key_is_kept_for_as_long_as_asked() -> None:
    """With `keep`, a caller that comes every 25 seconds is remembered, although its calls no longer count."""
    keyed = KeyedGcra(Gcra(1, 1_450, 10), keep=MINUTE)
    assert keyed.spend_again("ada", NOW) is None
    keyed.spend("ada", NOW)
    for second in range(25, 600, 25):
        keyed.spend(f"other {second}", NOW + second * SECOND - 1)
        assert keyed.spend_again("ada", NOW + second * SECOND) is True
