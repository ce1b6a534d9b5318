"""The scheduler's rules of places and shares hold, and no event is lost, in any order of calls."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.webhooks.shop import Scene

from taproof.webhooks.scheduler import Limits, Turn

DEVELOPERS = {"a": "first", "b": "first", "c": "first", "d": "second", "e": "third", "healthy": "fourth"}
SMALL = Limits(posts=30, unproven_posts=20, endpoint_posts=8, failures_to_open=3, waiting=60, unproven_waiting=16)


class AnyOrder(RuleBasedStateMachine):
    """Small limits, so that all of them are reached; 6 endpoints, of which the last always works."""

    turns = Bundle("turns")

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(SMALL)
        self.waiting: set[str] = set()
        self.under_way: Counter[str] = Counter()
        self.last: dict[str, bool] = {}
        self.posting: dict[str, Turn] = {}

    def teardown(self) -> None:
        """Finish every post: every waiting event then has its turn, and all places are free."""
        while (turn := self.scene.scheduler.take()) is not None or self.posting:
            if turn is None:
                turn = self.posting.pop(next(iter(self.posting)))
            else:
                self.waiting.remove(turn.delivery.event.id)
            self.scene.scheduler.finish(turn, delivered=None)
        assert not self.waiting
        for load in (self.scene.scheduler._posts, self.scene.scheduler._waiting):
            assert load.of_kind == [0, 0]
            assert not load.of_developer

    def unproven_under_way(self, developer: str | None = None) -> int:
        """Return the number of running posts to unproven endpoints, of one developer if given."""
        unproven = {project: count for project, count in self.under_way.items() if not self.last.get(project, False)}
        return sum(count for project, count in unproven.items() if developer in {None, DEVELOPERS[project]})

    def may_have_a_place(self, project: str, posts: int) -> bool:
        """Return whether, by the rules, an endpoint with this many posts may have one more."""
        free = SMALL.posts - self.under_way.total()
        if self.last.get(project, False):
            return free > 0 and posts < max(1, free // 5)
        free = min(free, SMALL.unproven_posts - self.unproven_under_way())
        return free > 0 and posts < max(1, free // 5) and self.unproven_under_way(DEVELOPERS[project]) < 3 * free

    @rule(project=st.sampled_from("abcde"), count=st.integers(1, 8))
    def claim(self, project: str, count: int) -> None:
        """Let a batch arrive, and return the refused events to the store."""
        for _ in range(count):
            delivery = self.scene.delivery(project, developer=DEVELOPERS[project])
            if self.scene.scheduler.add(delivery):
                self.waiting.add(delivery.event.id)

    @rule(target=turns)
    def take(self) -> Turn | None:
        """Take one turn, and check that the posts respect every limit."""
        turn = self.scene.scheduler.take()
        if turn is None:
            return None
        self.waiting.remove(turn.delivery.event.id)
        if turn.post:
            project = turn.delivery.event.project_id
            assert self.may_have_a_place(project, self.under_way[project])
            self.under_way[project] += 1
            self.posting[turn.delivery.event.id] = turn
            assert self.under_way[project] <= turn.endpoint.limit <= SMALL.endpoint_posts
            assert self.under_way.total() <= SMALL.posts
        return turn

    @rule(turn=consumes(turns), delivered=st.sampled_from([True, False, False, None]))
    def finish(self, turn: Turn | None, *, delivered: bool | None) -> None:
        """Let a post succeed, fail or not be sent; a skipped turn holds nothing."""
        if turn is None:
            return
        self.scene.scheduler.finish(turn, delivered=delivered if turn.post else None)
        if turn.post:
            project = turn.delivery.event.project_id
            self.under_way[project] -= 1
            del self.posting[turn.delivery.event.id]
            if delivered is not None:
                self.last[project] = delivered

    @rule(seconds=st.sampled_from([1.0, 29.0, 30.0, 60.0, 300.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass; a circuit may be due for a probe."""
        self.scene.clock.now += seconds

    @rule(modulus=st.integers(2, 4))
    def lapse(self, modulus: int) -> None:
        """Let some events wait for too long."""
        late = self.scene.scheduler.take_late(lambda each: int(each.event.id[4:]) % modulus == 0)
        for each in late:
            self.waiting.remove(each.event.id)

    @precondition(lambda self: self.under_way.total() < SMALL.posts)
    @rule()
    def a_healthy_endpoint_is_served(self) -> None:
        """Below the total, no hanging endpoint keeps a working one from its place."""
        if not self.last.get("healthy"):
            return
        delivery = self.scene.delivery("healthy", developer=DEVELOPERS["healthy"])
        assert self.scene.scheduler.add(delivery)
        for _ in range(2 * len(self.waiting) + 2):
            turn = self.scene.scheduler.take()
            assert turn is not None
            if turn.delivery is delivery:
                self.scene.scheduler.finish(turn, delivered=True)
                return
            self.waiting.remove(turn.delivery.event.id)
            self.scene.scheduler.finish(turn, delivered=None)
        raise AssertionError

    @precondition(lambda self: "healthy" not in self.last and self.may_have_a_place("healthy", 0))
    @rule()
    def an_endpoint_proves_healthy(self) -> None:
        """Let the endpoint accept its first event."""
        delivery = self.scene.delivery("healthy", developer=DEVELOPERS["healthy"])
        if not self.scene.scheduler.add(delivery):
            return
        while (turn := self.scene.scheduler.take()) is not None:
            self.waiting.discard(turn.delivery.event.id)
            ours = turn.delivery is delivery
            self.scene.scheduler.finish(turn, delivered=True if ours else None)
            if ours:
                self.last["healthy"] = True
                return
        raise AssertionError

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every accepted event is waiting, being posted, or returned: the counts match the model."""
        assert self.scene.scheduler.waiting == len(self.waiting)
        unproven = self.unproven_under_way()
        assert self.scene.scheduler._posts.of_kind == [unproven, self.under_way.total() - unproven]

    @invariant()
    def an_event_that_may_be_posted_gets_its_turn(self) -> None:
        """If an event may be posted, its endpoint is in a queue, and an endpoint gets the next turn."""
        for endpoint in self.scene.scheduler._busy.values():
            assert endpoint.posts == self.under_way[endpoint.key[0]]
            if not endpoint.waiting or endpoint.posts >= endpoint.limit:
                continue
            assert endpoint.line is not None
            if endpoint.line is not self.scene.scheduler._skipping:
                may = self.may_have_a_place(endpoint.key[0], endpoint.posts)
                first = self.scene.scheduler._first_with_place(proven=endpoint.proven)
                assert first is not None or not may


TestAnyOrder = AnyOrder.TestCase
