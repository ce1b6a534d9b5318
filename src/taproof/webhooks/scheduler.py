"""Choose the next claimed event to post, with limits for each endpoint and in total, and a circuit breaker.

An endpoint is a project and its webhook URL. Its state exists only in this process's memory. Other processes, and this
process after a restart, start without it.

| rule | |
|---|---|
| slow start | 2 concurrent posts to a new endpoint; each success adds one, up to 32; each failure halves the limit |
| places | 1,000 concurrent posts; unproven endpoints (last attempt failed, or none yet) get at most 800 |
| shares | an endpoint gets a place only while it has none, or fewer than a fifth of the free places: 40 hanging \
endpoints get 22 each, and 400 get two or three each |
| | a developer's unproven endpoints get one of the 800 places only while together they have fewer than three times \
the free places: one developer gets at most 600, and two developers get 343 each |
| | the room for waiting events is shared in the same way |
| circuit breaker | 10 failures in a row open it for 30 s; then one probe is sent, and other events are still skipped |
| | each failed probe doubles the time, up to 5 minutes; a success, even in another process, closes the circuit |
| | an event that a developer resends is always a probe |
| | a failed post does not count if another post has succeeded since it began: hanging posts end together, long after \
others were accepted |
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from taproof.core.deliveries import Delivery

FIRST_LIMIT: Final = 2
HIGHEST_LIMIT: Final = 32
FAILURES_TO_OPEN: Final = 10
OPEN_SECONDS: Final = 30.0
LONGEST_OPEN_SECONDS: Final = 300.0


class Limits(NamedTuple):
    """The limits of one process."""

    posts: int = 1_000
    unproven_posts: int = 800
    endpoint_posts: int = HIGHEST_LIMIT
    failures_to_open: int = FAILURES_TO_OPEN
    waiting: int = 5_000
    """The number of waiting events at which this process stops claiming more, to limit memory."""
    unproven_waiting: int = 2_000
    """The number of waiting events for unproven endpoints at which only events for proven endpoints are accepted."""
    idle_kept: int = 10_000
    """The maximum number of remembered idle endpoints; the least recently used are dropped first. Healthy endpoints are
    not dropped earlier, because they would have to share the places of unproven endpoints again."""


LIMITS: Final = Limits()


def _share(free: int) -> int:
    """Return an endpoint's share of the free places: at least one, and at most a fifth (200 free places allow 40)."""
    return max(1, free // 5)


def _share_of_developer(free: int) -> int:
    """Return the share of a developer's unproven endpoints, given the free places for unproven endpoints."""
    return 3 * free


class Endpoint:
    """The state of one endpoint. Only `Scheduler` changes it."""

    def __init__(self, key: tuple[str, str], developer_id: str) -> None:
        self.key = key
        self.developer_id = developer_id
        self.waiting: deque[Delivery] = deque()
        self.line: dict[Endpoint, None] | None = None
        self.posts = 0
        self.limit = FIRST_LIMIT
        self.proven = False
        self.failures = 0
        """The number of failures in a row, counting only posts that began after the last success."""
        self.successes = 0
        self.open_until: float | None = None
        """None while the circuit is closed."""
        self.open_seconds = 0.0
        self.probe: Turn | None = None

    @property
    def full(self) -> bool:
        """True if enough events are waiting for the allowed posts, so that no more need to be claimed."""
        return self.posts + len(self.waiting) >= 2 * self.limit


class Load:
    """The number of open posts, or of waiting events."""

    def __init__(self) -> None:
        self.of_kind = [0, 0]
        """The numbers for unproven and for proven endpoints; the index is `Endpoint.proven`."""
        self.of_developer: Counter[str] = Counter()
        """The number for each developer's unproven endpoints. Developers with zero are omitted."""

    def add(self, endpoint: Endpoint, count: int) -> None:
        """Add `count`, which may be negative, for this endpoint."""
        self.of_kind[endpoint.proven] += count
        if endpoint.proven or not count:
            return
        self.of_developer[endpoint.developer_id] += count
        if not self.of_developer[endpoint.developer_id]:
            del self.of_developer[endpoint.developer_id]


class Turn(NamedTuple):
    """The next event. If `post` is False, the circuit is open and the event is skipped."""

    delivery: Delivery
    endpoint: Endpoint
    post: bool
    successes: int
    """The number of successful posts to the endpoint at the start of the turn."""


class Scheduler:
    """The waiting events, the places, and the state of each endpoint. `clock` returns a monotonic time in seconds.

    Each event that `add` accepts is returned once, by `take`, `take_late` or `take_all`. Each turn with `post` that
    `take` returns occupies a place until it is passed to `finish`.
    """

    def __init__(self, clock: Callable[[], float], limits: Limits = LIMITS) -> None:
        self._clock = clock
        self._limits = limits
        self._busy: dict[tuple[str, str], Endpoint] = {}
        self._idle: OrderedDict[tuple[str, str], Endpoint] = OrderedDict()
        self._full: set[tuple[str, str]] = set()
        self._crowded: set[str] = set()
        # Endpoints with an event that their own limits allow next. Each endpoint is in at most one line and moves to
        # its end after every turn, so that none starves. The shares depend on the free places, so `take` checks them.
        self._skipping: dict[Endpoint, None] = {}
        self._lines: tuple[dict[Endpoint, None], dict[Endpoint, None]] = ({}, {})
        """The lines of unproven and proven endpoints; the index is `Endpoint.proven`."""
        self._proven_next = True
        """The two kinds alternate while there are places for both."""
        self._posts = Load()
        self._waiting = Load()

    @property
    def waiting(self) -> int:
        """The number of waiting events."""
        return sum(self._waiting.of_kind)

    def full_projects(self) -> set[str]:
        """Return the projects that need no more claimed events now."""
        return {project_id for project_id, _ in self._full}

    def crowded_developers(self) -> set[str]:
        """Return the developers who need no more claimed events now, except for `spared_projects`.

        One of their events was refused at the limit, and their waiting events still exceed half the limit.
        """
        half = _share_of_developer(self._limits.unproven_waiting - self._waiting.of_kind[False]) // 2
        self._crowded = {each for each in self._crowded if self._waiting.of_developer[each] > half}
        return self._crowded

    def spared_projects(self) -> set[str]:
        """Return the crowded developers' projects with proven endpoints. There is room for these projects' events.

        Projects that also have an unproven endpoint, for example after a URL change, are omitted.
        """
        if not self._crowded:
            return set()
        known = [each for each in (*self._busy.values(), *self._idle.values()) if each.developer_id in self._crowded]
        return {each.key[0] for each in known if each.proven} - {each.key[0] for each in known if not each.proven}

    def is_full(self, delivery: Delivery) -> bool:
        """Return whether this event's endpoint needs no more claimed events now."""
        return _key(delivery) in self._full

    def add(self, delivery: Delivery) -> bool:
        """Add a claimed event to the queue. If there is no room, do not add it and return False.

        A proven endpoint accepts all events of one claim. While it is full, other events are claimed first.
        """
        key = _key(delivery)
        endpoint = self._busy.get(key) or self._idle.pop(key, None) or Endpoint(key, delivery.developer_id)
        self._busy[key] = endpoint
        if endpoint.open_until is not None:
            self._reconsider(endpoint, delivery)
        room = self._has_room(endpoint)
        if room:
            endpoint.waiting.append(delivery)
            self._waiting.add(endpoint, 1)
        self._line_up(endpoint)
        return room

    def _has_room(self, endpoint: Endpoint) -> bool:
        if self._skips(endpoint):
            return True
        if self._has_its_share(endpoint) or (endpoint.full and not endpoint.proven):
            return False
        if endpoint.proven:
            return True
        developer_id = endpoint.developer_id
        free = self._limits.unproven_waiting - self._waiting.of_kind[False]
        if self._waiting.of_developer[developer_id] < _share_of_developer(free):
            return True
        self._crowded.add(developer_id)
        return False

    def _reconsider(self, endpoint: Endpoint, delivery: Delivery) -> None:
        """Close an open circuit, or make this event the probe, if the event shows a reason to."""
        if not delivery.endpoint_fails:
            # Since then, another process or a developer's test has succeeded, or the URL was set again.
            endpoint.open_until = None
            endpoint.failures = 0
        elif delivery.is_resent and endpoint.probe is None:
            endpoint.open_until = self._clock()

    def take(self) -> Turn | None:
        """Return the next turn; None if no event can be posted now."""
        if self._skipping:
            return self._turn_of(next(iter(self._skipping)), post=False)
        for proven in (self._proven_next, not self._proven_next):
            endpoint = self._first_with_place(proven=proven)
            if endpoint is not None:
                self._proven_next = not proven
                return self._turn_of(endpoint, post=True)
        return None

    def _first_with_place(self, *, proven: bool) -> Endpoint | None:
        free = self._limits.posts - sum(self._posts.of_kind)
        if not proven:
            free = min(free, self._limits.unproven_posts - self._posts.of_kind[False])
        if free <= 0:
            return None
        share, share_of_developer = _share(free), _share_of_developer(free)
        of_developer = self._posts.of_developer
        for endpoint in self._lines[proven]:
            if endpoint.posts < share and (proven or of_developer[endpoint.developer_id] < share_of_developer):
                return endpoint
        return None

    def _turn_of(self, endpoint: Endpoint, *, post: bool) -> Turn:
        turn = Turn(endpoint.waiting.popleft(), endpoint, post, endpoint.successes)
        self._waiting.add(endpoint, -1)
        if post:
            endpoint.posts += 1
            self._posts.add(endpoint, 1)
            if endpoint.open_until is not None:
                endpoint.probe = turn
        self._line_up(endpoint)
        return turn

    def finish(self, turn: Turn, *, delivered: bool | None) -> None:
        """Release a turn's place and update its endpoint with the outcome; `delivered` is None if nothing was sent."""
        if not turn.post:
            return
        endpoint = turn.endpoint
        endpoint.posts -= 1
        self._posts.add(endpoint, -1)
        if delivered:
            endpoint.limit = min(self._limits.endpoint_posts, endpoint.limit + 1)
            endpoint.failures = 0
            endpoint.successes += 1
            endpoint.open_until = None
        elif delivered is False:
            endpoint.limit = max(1, endpoint.limit // 2)
            if turn.successes == endpoint.successes:
                endpoint.failures += 1
                self._count_failure(endpoint, probed=turn is endpoint.probe)
        if delivered is not None and delivered != endpoint.proven:
            loads = ((self._posts, endpoint.posts), (self._waiting, len(endpoint.waiting)))
            for load, count in loads:
                load.add(endpoint, -count)
            endpoint.proven = delivered
            for load, count in loads:
                load.add(endpoint, count)
        if turn is endpoint.probe:
            endpoint.probe = None
        self._line_up(endpoint)

    def _count_failure(self, endpoint: Endpoint, *, probed: bool) -> None:
        if probed:
            endpoint.open_seconds = min(LONGEST_OPEN_SECONDS, 2 * endpoint.open_seconds)
        elif endpoint.open_until is None and endpoint.failures >= self._limits.failures_to_open:
            endpoint.open_seconds = OPEN_SECONDS
        else:
            return  # A post that began before the circuit opened adds no new information.
        endpoint.open_until = self._clock() + endpoint.open_seconds

    def take_late(self, is_late: Callable[[Delivery], bool]) -> list[Delivery]:
        """Remove and return the events that have waited for so long that another worker should send them."""
        late: list[Delivery] = []
        for endpoint in [each for each in self._busy.values() if each.waiting]:
            in_time: deque[Delivery] = deque()
            for each in endpoint.waiting:
                (late if is_late(each) else in_time).append(each)
            self._waiting.add(endpoint, len(in_time) - len(endpoint.waiting))
            endpoint.waiting = in_time
            self._line_up(endpoint)
        return late

    def take_all(self) -> list[Delivery]:
        """Remove and return all waiting events."""
        return self.take_late(lambda _: True)

    def _skips(self, endpoint: Endpoint) -> bool:
        until = endpoint.open_until
        return until is not None and (endpoint.probe is not None or self._clock() < until)

    def _has_its_share(self, endpoint: Endpoint) -> bool:
        """Return whether the endpoint's waiting events fill its share, so that the remaining room is for others."""
        return len(endpoint.waiting) >= _share(self._limits.waiting - self.waiting)

    def _line_up(self, endpoint: Endpoint) -> None:
        """Move an endpoint to the right line after a change."""
        if endpoint.line is not None:
            del endpoint.line[endpoint]
            endpoint.line = None
        skips = self._skips(endpoint)
        if endpoint.waiting and skips:
            endpoint.line = self._skipping
        elif endpoint.waiting and endpoint.posts < endpoint.limit:
            endpoint.line = self._lines[endpoint.proven]
        if endpoint.line is not None:
            endpoint.line[endpoint] = None
        if not skips and (endpoint.full or self._has_its_share(endpoint)):
            self._full.add(endpoint.key)
        else:
            self._full.discard(endpoint.key)
        if not endpoint.posts and not endpoint.waiting:
            del self._busy[endpoint.key]
            self._idle[endpoint.key] = endpoint
            if len(self._idle) > self._limits.idle_kept:
                self._idle.popitem(last=False)


def _key(delivery: Delivery) -> tuple[str, str]:
    return delivery.event.project_id, delivery.webhook_url
