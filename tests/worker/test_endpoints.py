"""Whose turn it is: places, slow start and circuit breaker, held to their rules by whatever may happen in any order."""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.worker.conftest import Scene

from taproof.worker import endpoints
from taproof.worker.endpoints import FIRST_LIMIT, HIGHEST_LIMIT, POSTS, UNPROVEN_POSTS, Turn


def test_an_unknown_endpoint_begins_with_two_posts(scene: Scene) -> None:
    """Nobody's server is met with a burst before it has answered once."""
    assert scene.at_once() == FIRST_LIMIT == 2


def test_each_success_adds_one_up_to_the_limit(scene: Scene) -> None:
    """Slow start: who takes events gets more of them at once, but nobody more than 32."""
    for expected in range(3, 50):
        scene.post(delivered=True)
        assert scene.at_once() == min(expected, HIGHEST_LIMIT)


def test_each_failure_halves_down_to_one(scene: Scene) -> None:
    """A receiver that is overloaded is relieved at once, and never given up altogether."""
    for _ in range(30):
        scene.post(delivered=True)
    for expected in (16, 8, 4, 2, 1, 1):
        scene.post(delivered=False)
        assert scene.at_once() == expected


def test_an_event_that_was_not_sent_teaches_nothing(scene: Scene) -> None:
    """What this service could not sign, or had no time for, is not the endpoint's failure."""
    for _ in range(2 * endpoints.FAILURES_TO_OPEN):
        scene.add()
        (turn,) = scene.take()
        scene.endpoints.finish(turn, delivered=None)
    assert scene.at_once() == FIRST_LIMIT


def test_another_url_of_a_project_is_another_endpoint(scene: Scene) -> None:
    """A developer who mends the URL does not wait for what was known of the wrong one."""
    for _ in range(endpoints.FAILURES_TO_OPEN):
        scene.post(delivered=False)
    assert scene.endpoints.add(scene.delivery(url="https://example.org/"))
    assert [turn.post for turn in scene.take()] == [True]


# ---- the circuit breaker


def opened(scene: Scene) -> None:
    for _ in range(endpoints.FAILURES_TO_OPEN):
        scene.post(delivered=False)


def test_ten_failures_in_a_row_open_the_circuit(scene: Scene) -> None:
    """All that waits, or comes, is skipped at once; nine failures, or a success between, are not enough."""
    for _ in range(3):
        for _ in range(endpoints.FAILURES_TO_OPEN - 1):
            scene.post(delivered=False)
        scene.post(delivered=True)
    opened(scene)
    assert scene.add(count=100) == 100
    assert [turn.post for turn in scene.take()] == [False] * 100
    assert not scene.endpoints.full_projects()


def test_what_waits_when_the_circuit_opens_is_skipped(scene: Scene) -> None:
    """Nobody holds on to events of an endpoint that is not sent to."""
    for _ in range(endpoints.FAILURES_TO_OPEN - 1):
        scene.post(delivered=False)
    scene.add(count=2)
    (turn,) = scene.take()
    scene.endpoints.finish(turn, delivered=False)
    assert [turn.post for turn in scene.take()] == [False]


def test_one_probe_at_a_time_and_twice_the_time_after_each_that_fails(scene: Scene) -> None:
    """30 s, 60 s, 120 s, 240 s, then 300 s each; while a probe is under way the others are skipped."""
    opened(scene)
    for seconds in (30, 60, 120, 240, 300, 300):
        scene.clock.now += seconds - 0.1
        scene.add()
        assert [turn.post for turn in scene.take()] == [False]
        scene.clock.now += 0.1
        scene.add(count=2)
        probe, other = scene.take()
        assert (probe.post, other.post) == (True, False)
        scene.add()
        assert [turn.post for turn in scene.take()] == [False]
        scene.endpoints.finish(probe, delivered=False)


@pytest.mark.parametrize("by_probe", [True, False])
def test_a_success_closes_the_circuit(scene: Scene, *, by_probe: bool) -> None:
    """Also one of a post that had begun before the circuit opened; the next ten failures open it for 30 s again."""
    for _ in range(20):
        scene.post(delivered=True)
    scene.add(count=2 * endpoints.FAILURES_TO_OPEN)
    turns = scene.take()
    straggler = turns.pop()
    for turn in turns:
        scene.endpoints.finish(turn, delivered=False)
    if by_probe:
        scene.endpoints.finish(straggler, delivered=False)
        scene.clock.now += endpoints.OPEN_SECONDS
        scene.post(delivered=True)
    else:
        scene.endpoints.finish(straggler, delivered=True)
    opened(scene)
    scene.clock.now += endpoints.OPEN_SECONDS
    assert scene.post(delivered=True).post


def test_what_other_processes_know_closes_the_circuit(scene: Scene) -> None:
    """One of them has got through, a developer's test has, or the URL was set anew: the next event is sent at once."""
    opened(scene)
    scene.endpoints.add(scene.delivery(fails=False))
    (turn,) = scene.take()
    assert turn.post
    scene.endpoints.finish(turn, delivered=False)
    for _ in range(endpoints.FAILURES_TO_OPEN - 1):
        assert scene.post(delivered=False).post
    scene.add()
    assert [turn.post for turn in scene.take()] == [False]


def test_an_event_that_is_sent_again_is_a_probe(scene: Scene) -> None:
    """Its developer has just asked for it: it is posted, one at a time, and what it finds counts as of any probe."""
    opened(scene)
    scene.endpoints.add(scene.delivery(attempt=10))
    (probe,) = scene.take()
    assert probe.post
    scene.endpoints.add(scene.delivery(attempt=10))
    assert [turn.post for turn in scene.take()] == [False]
    scene.endpoints.finish(probe, delivered=False)
    scene.add()
    assert [turn.post for turn in scene.take()] == [False]
    scene.endpoints.add(scene.delivery(attempt=10))
    (probe,) = scene.take()
    scene.endpoints.finish(probe, delivered=True)
    assert scene.post(delivered=True).post


def test_a_probe_that_is_given_back_is_followed_by_another(scene: Scene) -> None:
    """Nothing was learnt of the endpoint, so the next event may find out."""
    opened(scene)
    scene.clock.now += endpoints.OPEN_SECONDS
    for _ in range(3):
        scene.add()
        (turn,) = scene.take()
        assert turn.post
        scene.endpoints.finish(turn, delivered=None)


def test_posts_that_hang_beside_others_that_are_taken_open_no_circuit(scene: Scene) -> None:
    """A receiver that hangs now and then is not cut off when its places have filled up with posts that hang."""
    for _ in range(30):
        scene.post(delivered=True)
    scene.add(count=32)
    *hanging, taken = scene.take()
    scene.endpoints.finish(taken, delivered=True)
    for turn in hanging:
        scene.endpoints.finish(turn, delivered=False)
    for _ in range(endpoints.FAILURES_TO_OPEN - 1):
        assert scene.post(delivered=False).post
    assert scene.post(delivered=True).post


def test_failures_of_posts_begun_before_the_circuit_opened_do_not_prolong_it(scene: Scene) -> None:
    """32 posts that hang together run out of time together: that is one finding, not several."""
    for _ in range(30):
        scene.post(delivered=True)
    scene.add(count=32)
    turns = scene.take()
    for turn in turns[:-1]:
        scene.endpoints.finish(turn, delivered=False)
    scene.clock.now += endpoints.OPEN_SECONDS - 1
    scene.endpoints.finish(turns[-1], delivered=False)
    scene.clock.now += 1
    assert scene.post(delivered=True).post


# ---- room


def test_a_backlog_of_an_unproven_endpoint_waits_in_the_store(scene: Scene) -> None:
    """As many wait as may be under way; then no more of the project are claimed until one has ended."""
    assert scene.add(count=100) == 2 * FIRST_LIMIT
    assert scene.endpoints.full_projects() == {"one"}
    turns = scene.take()
    scene.endpoints.finish(turns[0], delivered=True)
    assert not scene.endpoints.full_projects()


def test_a_proven_endpoint_takes_a_whole_batch(scene: Scene) -> None:
    """A receiver that keeps up with its backlog costs one claim per batch, not one for every few events."""
    scene.post(delivered=True)
    assert scene.add(count=100) == 100
    assert scene.endpoints.full_projects() == {"one"}


def test_endpoints_that_hang_leave_a_fifth_of_the_places(scene: Scene) -> None:
    """A proven endpoint gets its places at once, however many others hang; a new one waits for one of theirs."""
    for _ in range(30):
        scene.post(delivered=True, project="proven")
    for number in range(UNPROVEN_POSTS):
        scene.add(f"hangs {number}", count=2)
    hanging = scene.take()
    assert len(hanging) == UNPROVEN_POSTS
    scene.add("new")
    assert scene.take() == []
    scene.add("proven", count=100)
    assert [turn.delivery.event.project_id for turn in scene.take()] == ["proven"] * HIGHEST_LIMIT
    for turn in hanging:
        scene.endpoints.finish(turn, delivered=None)
    assert "new" in {turn.delivery.event.project_id for turn in scene.take()}


def test_proven_endpoints_do_not_starve_new_ones(scene: Scene) -> None:
    """When all places are taken, those that come free go to both kinds in turn."""
    proven = [f"proven {number}" for number in range(40)]
    for project in proven:
        for _ in range(30):
            scene.post(delivered=True, project=project)
    for project in proven:
        scene.add(project, count=100)
    turns = scene.take()
    assert len(turns) == POSTS
    scene.add("new", count=2)
    for turn in turns[:4]:
        scene.endpoints.finish(turn, delivered=True)
    assert [turn.delivery.event.project_id for turn in scene.take()].count("new") == 2


def test_so_many_that_hang_that_no_more_may_wait(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, and what cannot be kept is given back, so that a proven endpoint's events are found."""
    monkeypatch.setattr(endpoints, "UNPROVEN_WAITING", 10)
    scene.post(delivered=True, project="proven")
    for number in range(20):
        scene.add(f"hangs {number}")
    assert scene.endpoints.waiting == 10
    assert scene.add("hangs") == 0
    assert scene.add("proven") == 1


def test_what_is_idle_is_forgotten_in_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million endpoints in a year take no memory; the one in use is not forgotten."""
    monkeypatch.setattr(endpoints, "IDLE_KEPT", 5)
    scene.add("busy", count=4)
    assert len(scene.take()) == 2
    for number in range(20):
        scene.add(f"idle {number}")
        (turn,) = scene.take()
        scene.endpoints.finish(turn, delivered=True)
    assert len(scene.endpoints._idle) == 5
    assert set(scene.endpoints._busy) == {("busy", "https://example.com/")}
    assert scene.at_once("idle 19") == 3
    assert scene.at_once("idle 0") == 2


# ---- any order of events


class AnyOrder(RuleBasedStateMachine):
    """Small limits, so that all of them are met; 6 endpoints, of which the last is one that always works."""

    turns = Bundle("turns")

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name, value in {"POSTS": 12, "UNPROVEN_POSTS": 8, "HIGHEST_LIMIT": 5, "FAILURES_TO_OPEN": 3}.items():
            self.patch.setattr(endpoints, name, value)
        self.patch.setattr(endpoints, "UNPROVEN_WAITING", 15)
        self.scene = Scene()
        self.waiting: set[str] = set()
        self.under_way: Counter[str] = Counter()
        self.last: dict[str, bool] = {}

    def teardown(self) -> None:
        """End all, in any case: no place and no event may be left over."""
        for each in self.scene.endpoints.take_all():
            self.waiting.remove(each.event.id)
        assert not self.waiting
        assert self.scene.endpoints._waiting == [0, 0]
        self.patch.undo()

    def unproven_under_way(self) -> int:
        return sum(count for project, count in self.under_way.items() if not self.last.get(project, False))

    @rule(project=st.sampled_from("abcde"), count=st.integers(1, 8))
    def claim(self, project: str, count: int) -> None:
        """A batch arrives; what is not taken is given back to the store."""
        for _ in range(count):
            delivery = self.scene.delivery(project)
            if self.scene.endpoints.add(delivery):
                self.waiting.add(delivery.event.id)

    @rule(target=turns)
    def take(self) -> Turn | None:
        """Take one turn; what is posted keeps to every limit."""
        unproven = self.unproven_under_way()
        turn = self.scene.endpoints.take()
        if turn is None:
            return None
        self.waiting.remove(turn.delivery.event.id)
        if turn.post:
            project = turn.delivery.event.project_id
            assert self.last.get(project, False) or unproven < 8
            self.under_way[project] += 1
            assert self.under_way[project] <= turn.endpoint.limit <= 5
            assert self.under_way.total() <= 12
        return turn

    @rule(turn=consumes(turns), delivered=st.sampled_from([True, False, False, None]))
    def finish(self, turn: Turn | None, *, delivered: bool | None) -> None:
        """A post ends, well, badly or unsent; a turn that was skipped holds nothing."""
        if turn is None:
            return
        self.scene.endpoints.finish(turn, delivered=delivered if turn.post else None)
        if turn.post:
            project = turn.delivery.event.project_id
            self.under_way[project] -= 1
            if delivered is not None:
                self.last[project] = delivered

    @rule(seconds=st.sampled_from([1.0, 29.0, 30.0, 60.0, 300.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; a circuit may be due for a probe."""
        self.scene.clock.now += seconds

    @rule(modulus=st.integers(2, 4))
    def lapse(self, modulus: int) -> None:
        """Some have waited for too long."""
        late = self.scene.endpoints.take_late(lambda each: int(each.event.id[4:]) % modulus == 0)
        for each in late:
            self.waiting.remove(each.event.id)

    @precondition(lambda self: self.under_way.total() < 12)
    @rule()
    def a_healthy_endpoint_is_served(self) -> None:
        """Below the total, nobody's hanging keeps an endpoint that works from its place."""
        if not self.last.get("healthy"):
            return
        delivery = self.scene.delivery("healthy")
        assert self.scene.endpoints.add(delivery)
        for _ in range(2 * len(self.waiting) + 2):
            turn = self.scene.endpoints.take()
            assert turn is not None
            if turn.delivery is delivery:
                self.scene.endpoints.finish(turn, delivered=True)
                return
            self.waiting.remove(turn.delivery.event.id)
            self.scene.endpoints.finish(turn, delivered=None)
        raise AssertionError

    @precondition(lambda self: "healthy" not in self.last and self.unproven_under_way() < 8)
    @rule()
    def an_endpoint_proves_healthy(self) -> None:
        """It takes its first event."""
        delivery = self.scene.delivery("healthy")
        if not self.scene.endpoints.add(delivery):
            return
        while (turn := self.scene.endpoints.take()) is not None:
            self.waiting.discard(turn.delivery.event.id)
            ours = turn.delivery is delivery
            self.scene.endpoints.finish(turn, delivered=True if ours else None)
            if ours:
                self.last["healthy"] = True
                return
        raise AssertionError

    @invariant()
    def nothing_is_lost(self) -> None:
        """What was taken waits, is under way, or has come out: the counts are those of the model."""
        assert self.scene.endpoints.waiting == len(self.waiting)
        unproven = self.unproven_under_way()
        assert self.scene.endpoints._posts == [unproven, self.under_way.total() - unproven]

    @invariant()
    def whoever_may_go_goes(self) -> None:
        """No event waits for nothing: when it may be posted, its endpoint is in a line."""
        for endpoint in self.scene.endpoints._busy.values():
            if endpoint.waiting and endpoint.posts < endpoint.limit:
                assert endpoint.line is not None
            assert endpoint.posts == self.under_way[endpoint.key[0]]


TestAnyOrder = AnyOrder.TestCase
