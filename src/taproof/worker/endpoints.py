"""Which claimed event may be posted next: so many posts per endpoint and in all, and none to one that keeps failing.

An endpoint is a project and its webhook URL. What is known of it lies in the memory of this process alone: another
process, or the next one, finds out for itself.

| rule | |
|---|---|
| slow start | 2 posts at once to an endpoint that is not known; each success adds one, up to 32; each failure halves |
| places | 1,000 posts at once; endpoints whose last attempt was no success, or that had none yet, get at most 800 |
| circuit breaker | 10 failures in a row open it for 30 s; then one probe goes out, and other events are still skipped |
| | each failed probe doubles the time, up to 5 minutes; a success closes the circuit, also another process's |
| | an event that a developer has sent again is a probe whenever it comes |
| | a post that fails counts for nothing when another has succeeded since it began: those that hang end together, \
long after all that were taken meanwhile |
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from taproof.core.model import Delivery

POSTS: Final = 1_000
UNPROVEN_POSTS: Final = 800
FIRST_LIMIT: Final = 2
HIGHEST_LIMIT: Final = 32
FAILURES_TO_OPEN: Final = 10
OPEN_SECONDS: Final = 30.0
LONGEST_OPEN_SECONDS: Final = 300.0
IDLE_KEPT: Final = 10_000
"""Endpoints that are remembered while nothing is to be sent to them; those not used for longest are forgotten first.
A healthy one is not forgotten sooner: it would have to share the places of the unproven ones again."""
UNPROVEN_WAITING: Final = 2_000
"""While so many events of unproven endpoints wait, further ones are taken for proven endpoints only."""


class Endpoint:
    """What is known of one endpoint. Only `Endpoints` changes it."""

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        self.waiting: deque[Delivery] = deque()
        self.line: dict[Endpoint, None] | None = None
        self.posts = 0
        self.limit = FIRST_LIMIT
        self.proven = False
        self.failures = 0
        """In a row, of posts begun after the last success."""
        self.successes = 0
        self.open_until: float | None = None
        """None while the circuit is closed."""
        self.open_seconds = 0.0
        self.probe: Turn | None = None

    @property
    def full(self) -> bool:
        """Whether as many events wait as may be posted at once: no more of them need be claimed."""
        return self.posts + len(self.waiting) >= 2 * self.limit


class Turn(NamedTuple):
    """An event whose turn it is: it is posted, or, when `post` is False, skipped, because the circuit is open."""

    delivery: Delivery
    endpoint: Endpoint
    post: bool
    successes: int
    """How many posts to the endpoint had succeeded when it came."""


class Endpoints:
    """The claimed events that wait, the places, and what is known of each endpoint.

    Each event that `add` took comes out once, by `take`, `take_late` or `take_all`. Each turn with `post` that `take`
    returned holds a place until it is given to `finish`.

    Args:
        clock: returns a time in seconds that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._busy: dict[tuple[str, str], Endpoint] = {}
        self._idle: OrderedDict[tuple[str, str], Endpoint] = OrderedDict()
        self._full: set[tuple[str, str]] = set()
        # Endpoints with an event whose turn could be now, as far as the endpoint itself goes: each is in one line at
        # most, and goes to its end after every turn, so that none is passed over.
        self._skipping: dict[Endpoint, None] = {}
        self._proven: dict[Endpoint, None] = {}
        self._unproven: dict[Endpoint, None] = {}
        self._unproven_next = False
        """The two kinds take turns while there is a place for either."""
        # Of unproven endpoints together, and of proven ones: the index is `Endpoint.proven`.
        self._posts = [0, 0]
        self._waiting = [0, 0]

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return sum(self._waiting)

    def full_projects(self) -> set[str]:
        """Return the projects of which no more events need be claimed now."""
        return {project_id for project_id, _ in self._full}

    def is_full(self, delivery: Delivery) -> bool:
        """Tell whether no more events need be claimed of this one's endpoint now."""
        return _key(delivery) in self._full

    def add(self, delivery: Delivery) -> bool:
        """Let a claimed event wait for its turn; False, and it is not taken, when there is no room.

        An endpoint that has just taken an event takes as many as are claimed at once: a backlog is then worked off
        with one claim for many events, and those of others are claimed first as long as it is full.
        """
        key = _key(delivery)
        endpoint = self._busy.get(key) or self._idle.pop(key, None) or Endpoint(key)
        self._busy[key] = endpoint
        if endpoint.open_until is not None:
            self._reconsider(endpoint, delivery)
        room = endpoint.proven or self._skips(endpoint)
        room = room or (not endpoint.full and self._waiting[False] < UNPROVEN_WAITING)
        if room:
            endpoint.waiting.append(delivery)
            self._waiting[endpoint.proven] += 1
        self._line_up(endpoint)
        return room

    def _reconsider(self, endpoint: Endpoint, delivery: Delivery) -> None:
        """Close an open circuit, or let this event be the probe, when there is a reason from outside this process."""
        if not delivery.endpoint_fails:
            # Another process, or a developer's test, has got through since; or the URL was set anew.
            endpoint.open_until = None
            endpoint.failures = 0
        elif delivery.is_resent and endpoint.probe is None:
            endpoint.open_until = self._clock()

    def take(self) -> Turn | None:
        """Return the next turn; None when no event may be posted now."""
        if self._skipping:
            return self._next_of(self._skipping, post=False)
        if sum(self._posts) >= POSTS:
            return None
        lines = [self._proven, self._unproven if self._posts[False] < UNPROVEN_POSTS else {}]
        line = lines[self._unproven_next] or lines[not self._unproven_next]
        if not line:
            return None
        self._unproven_next = line is self._proven
        return self._next_of(line, post=True)

    def _next_of(self, line: dict[Endpoint, None], *, post: bool) -> Turn:
        endpoint = next(iter(line))
        turn = Turn(endpoint.waiting.popleft(), endpoint, post, endpoint.successes)
        self._waiting[endpoint.proven] -= 1
        if post:
            endpoint.posts += 1
            self._posts[endpoint.proven] += 1
            if endpoint.open_until is not None:
                endpoint.probe = turn
        self._line_up(endpoint)
        return turn

    def finish(self, turn: Turn, *, delivered: bool | None) -> None:
        """Give back a turn's place, and learn from how its post ended; None when nothing was sent."""
        if not turn.post:
            return
        endpoint = turn.endpoint
        endpoint.posts -= 1
        self._posts[endpoint.proven] -= 1
        if delivered:
            endpoint.limit = min(HIGHEST_LIMIT, endpoint.limit + 1)
            endpoint.failures = 0
            endpoint.successes += 1
            endpoint.open_until = None
        elif delivered is False:
            endpoint.limit = max(1, endpoint.limit // 2)
            if turn.successes == endpoint.successes:
                endpoint.failures += 1
                self._count_failure(endpoint, probed=turn is endpoint.probe)
        if delivered is not None and delivered != endpoint.proven:
            endpoint.proven = delivered
            for counts, count in ((self._posts, endpoint.posts), (self._waiting, len(endpoint.waiting))):
                counts[not delivered] -= count
                counts[delivered] += count
        if turn is endpoint.probe:
            endpoint.probe = None
        self._line_up(endpoint)

    def _count_failure(self, endpoint: Endpoint, *, probed: bool) -> None:
        if probed:
            endpoint.open_seconds = min(LONGEST_OPEN_SECONDS, 2 * endpoint.open_seconds)
        elif endpoint.open_until is None and endpoint.failures >= FAILURES_TO_OPEN:
            endpoint.open_seconds = OPEN_SECONDS
        else:
            return  # One that was sent before the circuit opened says nothing new.
        endpoint.open_until = self._clock() + endpoint.open_seconds

    def take_late(self, is_late: Callable[[Delivery], bool]) -> list[Delivery]:
        """Return those that have waited for so long that another worker should have them; they wait no more."""
        late: list[Delivery] = []
        for endpoint in [each for each in self._busy.values() if each.waiting]:
            in_time: deque[Delivery] = deque()
            for each in endpoint.waiting:
                (late if is_late(each) else in_time).append(each)
            self._waiting[endpoint.proven] -= len(endpoint.waiting) - len(in_time)
            endpoint.waiting = in_time
            self._line_up(endpoint)
        return late

    def take_all(self) -> list[Delivery]:
        """Return all that wait; they wait no more."""
        return self.take_late(lambda _: True)

    def _skips(self, endpoint: Endpoint) -> bool:
        until = endpoint.open_until
        return until is not None and (endpoint.probe is not None or self._clock() < until)

    def _line_up(self, endpoint: Endpoint) -> None:
        """Put an endpoint that was changed where it belongs now."""
        if endpoint.line is not None:
            del endpoint.line[endpoint]
            endpoint.line = None
        skips = self._skips(endpoint)
        if endpoint.waiting and skips:
            endpoint.line = self._skipping
        elif endpoint.waiting and endpoint.posts < endpoint.limit:
            endpoint.line = self._proven if endpoint.proven else self._unproven
        if endpoint.line is not None:
            endpoint.line[endpoint] = None
        if endpoint.full and not skips:
            self._full.add(endpoint.key)
        else:
            self._full.discard(endpoint.key)
        if not endpoint.posts and not endpoint.waiting:
            del self._busy[endpoint.key]
            self._idle[endpoint.key] = endpoint
            if len(self._idle) > IDLE_KEPT:
                self._idle.popitem(last=False)


def _key(delivery: Delivery) -> tuple[str, str]:
    return delivery.event.project_id, delivery.webhook_url
