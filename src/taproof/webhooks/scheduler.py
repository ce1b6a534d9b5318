"""Which claimed event may be posted next: so many posts per endpoint and in all, and none to one that keeps failing.

An endpoint is a project and its webhook URL. What is known of it lies in the memory of this process alone: another
process, or the next one, finds out for itself.

| rule | |
|---|---|
| slow start | 2 posts at once to an endpoint that is not known; each success adds one, up to 32; each failure halves |
| places | 1,000 posts at once; endpoints whose last attempt was no success, or that had none yet, get at most 800 |
| shares | an endpoint takes a place only while it has none, or fewer than a fifth of those that are still free: 40 \
that hang have 22 each, and 400 have two or three |
| | a developer's unproven endpoints take one of the 800 only while together they have fewer than three times as many \
as are still free: those of one have 600 at most, those of two 343 each |
| | the room for events that wait is shared out in the same way |
| circuit breaker | 10 failures in a row open it for 30 s; then one probe goes out, and other events are still skipped |
| | each failed probe doubles the time, up to 5 minutes; a success closes the circuit, also another process's |
| | an event that a developer has sent again is a probe whenever it comes |
| | a post that fails counts for nothing when another has succeeded since it began: those that hang end together, \
long after all that were taken meanwhile |
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from taproof.core.deliveries import Delivery

POSTS: Final = 1_000
UNPROVEN_POSTS: Final = 800
FIRST_LIMIT: Final = 2
HIGHEST_LIMIT: Final = 32
FAILURES_TO_OPEN: Final = 10
OPEN_SECONDS: Final = 30.0
LONGEST_OPEN_SECONDS: Final = 300.0
IDLE_KEPT: Final = 10_000
"""Scheduler that are remembered while nothing is to be sent to them; those not used for longest are forgotten first.
A healthy one is not forgotten sooner: it would have to share the places of the unproven ones again."""
WAITING: Final = 5_000
"""While so many events wait in this process, none are claimed: it bounds the memory that they take."""
UNPROVEN_WAITING: Final = 2_000
"""While so many events of unproven endpoints wait, further ones are taken for proven endpoints only."""


def _share(free: int) -> int:
    """How many an endpoint may have of which so many are free: never none, and so few that 200 are enough for 32."""
    return max(1, free // 5)


def _share_of_developer(free: int) -> int:
    """How many a developer's unproven endpoints may have of which so many are free for unproven ones."""
    return 3 * free


class Endpoint:
    """What is known of one endpoint. Only `Scheduler` changes it."""

    def __init__(self, key: tuple[str, str], developer_id: str) -> None:
        self.key = key
        self.developer_id = developer_id
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


class Load:
    """How many posts are under way, or events wait."""

    def __init__(self) -> None:
        self.of_kind = [0, 0]
        """Of unproven endpoints together, and of proven ones: the index is `Endpoint.proven`."""
        self.of_developer: Counter[str] = Counter()
        """Of a developer's unproven endpoints; those who have none are left out."""

    def add(self, endpoint: Endpoint, count: int) -> None:
        """Count so many more, or fewer, of this endpoint."""
        self.of_kind[endpoint.proven] += count
        if endpoint.proven or not count:
            return
        self.of_developer[endpoint.developer_id] += count
        if not self.of_developer[endpoint.developer_id]:
            del self.of_developer[endpoint.developer_id]


class Turn(NamedTuple):
    """An event whose turn it is: it is posted, or, when `post` is False, skipped, because the circuit is open."""

    delivery: Delivery
    endpoint: Endpoint
    post: bool
    successes: int
    """How many posts to the endpoint had succeeded when it came."""


class Scheduler:
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
        self._crowded: set[str] = set()
        # Scheduler with an event whose turn could be now, as far as the endpoint itself goes: each is in one line at
        # most, and goes to its end after every turn, so that none is passed over. Who may take a place depends on how
        # many are free, and is judged when there is one to take.
        self._skipping: dict[Endpoint, None] = {}
        self._lines: tuple[dict[Endpoint, None], dict[Endpoint, None]] = ({}, {})
        """Of unproven endpoints, and of proven ones: the index is `Endpoint.proven`."""
        self._proven_next = True
        """The two kinds take turns while there is a place for either."""
        self._posts = Load()
        self._waiting = Load()

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return sum(self._waiting.of_kind)

    def full_projects(self) -> set[str]:
        """Return the projects of which no more events need be claimed now."""
        return {project_id for project_id, _ in self._full}

    def crowded_developers(self) -> set[str]:
        """Return the developers of whom no more events need be claimed now, but for those of `spared_projects`.

        An event of theirs was refused since as many waited as may; and more than half as many as may still wait.
        """
        half = _share_of_developer(UNPROVEN_WAITING - self._waiting.of_kind[False]) // 2
        self._crowded = {each for each in self._crowded if self._waiting.of_developer[each] > half}
        return self._crowded

    def spared_projects(self) -> set[str]:
        """Return the projects of crowded developers whose endpoints are proven: there is room for their events.

        One that also has an endpoint that is not proven, as after a change of its URL, is not among them.
        """
        if not self._crowded:
            return set()
        known = [each for each in (*self._busy.values(), *self._idle.values()) if each.developer_id in self._crowded]
        return {each.key[0] for each in known if each.proven} - {each.key[0] for each in known if not each.proven}

    def is_full(self, delivery: Delivery) -> bool:
        """Tell whether no more events need be claimed of this one's endpoint now."""
        return _key(delivery) in self._full

    def add(self, delivery: Delivery) -> bool:
        """Let a claimed event wait for its turn; False, and it is not taken, when there is no room.

        An endpoint that has just taken an event takes as many as are claimed at once: a backlog is then worked off
        with one claim for many events, and those of others are claimed first as long as it is full.
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
        free = UNPROVEN_WAITING - self._waiting.of_kind[False]
        if self._waiting.of_developer[developer_id] < _share_of_developer(free):
            return True
        self._crowded.add(developer_id)
        return False

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
            return self._turn_of(next(iter(self._skipping)), post=False)
        for proven in (self._proven_next, not self._proven_next):
            endpoint = self._first_with_place(proven=proven)
            if endpoint is not None:
                self._proven_next = not proven
                return self._turn_of(endpoint, post=True)
        return None

    def _first_with_place(self, *, proven: bool) -> Endpoint | None:
        free = POSTS - sum(self._posts.of_kind)
        if not proven:
            free = min(free, UNPROVEN_POSTS - self._posts.of_kind[False])
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
        """Give back a turn's place, and learn from how its post ended; None when nothing was sent."""
        if not turn.post:
            return
        endpoint = turn.endpoint
        endpoint.posts -= 1
        self._posts.add(endpoint, -1)
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
            self._waiting.add(endpoint, len(in_time) - len(endpoint.waiting))
            endpoint.waiting = in_time
            self._line_up(endpoint)
        return late

    def take_all(self) -> list[Delivery]:
        """Return all that wait; they wait no more."""
        return self.take_late(lambda _: True)

    def _skips(self, endpoint: Endpoint) -> bool:
        until = endpoint.open_until
        return until is not None and (endpoint.probe is not None or self._clock() < until)

    def _has_its_share(self, endpoint: Endpoint) -> bool:
        """Whether so many of its events wait that the room that is left is for others."""
        return len(endpoint.waiting) >= _share(WAITING - self.waiting)

    def _line_up(self, endpoint: Endpoint) -> None:
        """Put an endpoint that was changed where it belongs now."""
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
            if len(self._idle) > IDLE_KEPT:
                self._idle.popitem(last=False)


def _key(delivery: Delivery) -> tuple[str, str]:
    return delivery.event.project_id, delivery.webhook_url
