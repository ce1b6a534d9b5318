"""The scheduler: places, their shares, slow start and circuit breaker."""

from collections import Counter

import pytest
from tests.webhooks.shop import Scene

from taproof.webhooks.scheduler import FAILURES_TO_OPEN, FIRST_LIMIT, HIGHEST_LIMIT, LIMITS, OPEN_SECONDS, Limits


def test_each_success_adds_one_up_to_the_limit(scene: Scene) -> None:
    """In a slow start, each success allows one more concurrent event, up to 32."""
    for expected in range(3, 50):
        scene.post(delivered=True)
        assert scene.at_once() == min(expected, HIGHEST_LIMIT)


def test_each_failure_halves_down_to_one(scene: Scene) -> None:
    """An overloaded receiver immediately gets fewer events, but always at least one."""
    for _ in range(30):
        scene.post(delivered=True)
    for expected in (16, 8, 4, 2, 1, 1):
        scene.post(delivered=False)
        assert scene.at_once() == expected


def test_an_event_that_was_not_sent_teaches_nothing(scene: Scene) -> None:
    """An event that this service could not sign, or had no time for, does not count as the endpoint's failure."""
    for _ in range(2 * FAILURES_TO_OPEN):
        scene.add()
        (turn,) = scene.take()
        scene.scheduler.finish(turn, delivered=None)
    assert scene.at_once() == FIRST_LIMIT == 2


def test_another_url_of_a_project_is_another_endpoint(scene: Scene) -> None:
    """After a change of the URL, failures of the old one do not delay events."""
    opened(scene)
    assert scene.scheduler.add(scene.delivery(url="https://example.org/"))
    assert [turn.post for turn in scene.take()] == [True]


# ---- the circuit breaker


def opened(scene: Scene) -> None:
    for _ in range(FAILURES_TO_OPEN):
        scene.post(delivered=False)


def test_ten_failures_in_a_row_open_the_circuit(scene: Scene) -> None:
    """All waiting and new events are skipped immediately; nine failures, or a success in between, are not enough."""
    for _ in range(3):
        for _ in range(FAILURES_TO_OPEN - 1):
            scene.post(delivered=False)
        scene.post(delivered=True)
    opened(scene)
    assert scene.add(count=100) == 100
    assert [turn.post for turn in scene.take()] == [False] * 100
    assert not scene.scheduler.full_projects()


def test_what_waits_when_the_circuit_opens_is_skipped(scene: Scene) -> None:
    """Events of an endpoint with an open circuit do not stay in memory."""
    for _ in range(FAILURES_TO_OPEN - 1):
        scene.post(delivered=False)
    scene.add(count=2)
    (turn,) = scene.take()
    scene.scheduler.finish(turn, delivered=False)
    assert [turn.post for turn in scene.take()] == [False]


def test_one_probe_at_a_time_and_twice_the_time_after_each_that_fails(scene: Scene) -> None:
    """The delays are 30, 60, 120, 240 and then 300 s; during a probe, other events are skipped."""
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
        scene.scheduler.finish(probe, delivered=False)


@pytest.mark.parametrize("by_probe", [True, False])
def test_a_success_closes_the_circuit(scene: Scene, *, by_probe: bool) -> None:
    """A success of a post that started before the circuit opened counts too.

    The next ten failures open it for 30 s again.
    """
    for _ in range(20):
        scene.post(delivered=True)
    scene.add(count=2 * FAILURES_TO_OPEN)
    turns = scene.take()
    straggler = turns.pop()
    for turn in turns:
        scene.scheduler.finish(turn, delivered=False)
    if by_probe:
        scene.scheduler.finish(straggler, delivered=False)
        scene.clock.now += OPEN_SECONDS
        scene.post(delivered=True)
    else:
        scene.scheduler.finish(straggler, delivered=True)
    opened(scene)
    scene.clock.now += OPEN_SECONDS
    assert scene.post(delivered=True).post


def test_what_other_processes_know_closes_the_circuit(scene: Scene) -> None:
    """After a success of another process, a developer's test, or a new URL, the next event is sent immediately."""
    opened(scene)
    scene.scheduler.add(scene.delivery(fails=False))
    (turn,) = scene.take()
    assert turn.post
    scene.scheduler.finish(turn, delivered=False)
    for _ in range(FAILURES_TO_OPEN - 1):
        assert scene.post(delivered=False).post
    scene.add()
    assert [turn.post for turn in scene.take()] == [False]


def test_an_event_that_is_sent_again_is_a_probe(scene: Scene) -> None:
    """A resend by the developer is posted, one at a time, and its result counts as that of any probe."""
    opened(scene)
    scene.scheduler.add(scene.delivery(attempt=10))
    (probe,) = scene.take()
    assert probe.post
    scene.scheduler.add(scene.delivery(attempt=10))
    assert [turn.post for turn in scene.take()] == [False]
    scene.scheduler.finish(probe, delivered=False)
    scene.add()
    assert [turn.post for turn in scene.take()] == [False]
    scene.scheduler.add(scene.delivery(attempt=10))
    (probe,) = scene.take()
    scene.scheduler.finish(probe, delivered=True)
    assert scene.post(delivered=True).post


def test_a_probe_that_is_given_back_is_followed_by_another(scene: Scene) -> None:
    """The probe had no result, so the next event becomes the probe."""
    opened(scene)
    scene.clock.now += OPEN_SECONDS
    for _ in range(3):
        scene.add()
        (turn,) = scene.take()
        assert turn.post
        scene.scheduler.finish(turn, delivered=None)


def test_posts_that_hang_beside_others_that_are_taken_open_no_circuit(scene: Scene) -> None:
    """A receiver that sometimes hangs is not cut off when hanging posts fill its places."""
    for _ in range(30):
        scene.post(delivered=True)
    scene.add(count=32)
    *hanging, taken = scene.take()
    scene.scheduler.finish(taken, delivered=True)
    for turn in hanging:
        scene.scheduler.finish(turn, delivered=False)
    for _ in range(FAILURES_TO_OPEN - 1):
        assert scene.post(delivered=False).post
    assert scene.post(delivered=True).post


def test_failures_of_posts_begun_before_the_circuit_opened_do_not_prolong_it(scene: Scene) -> None:
    """32 posts that time out together count as one failure, not several."""
    for _ in range(30):
        scene.post(delivered=True)
    scene.add(count=32)
    turns = scene.take()
    for turn in turns[:-1]:
        scene.scheduler.finish(turn, delivered=False)
    scene.clock.now += OPEN_SECONDS - 1
    scene.scheduler.finish(turns[-1], delivered=False)
    scene.clock.now += 1
    assert scene.post(delivered=True).post


# ---- room


def test_a_backlog_of_an_unproven_endpoint_waits_in_the_store(scene: Scene) -> None:
    """As many events wait as may be running; then no more of the project are claimed until one has ended."""
    assert scene.add(count=100) == 2 * FIRST_LIMIT
    assert scene.scheduler.full_projects() == {"one"}
    turns = scene.take()
    scene.scheduler.finish(turns[0], delivered=True)
    assert not scene.scheduler.full_projects()


def test_a_proven_endpoint_takes_a_whole_batch(scene: Scene) -> None:
    """A receiver that keeps up with its backlog costs one claim per batch, not one per few events."""
    scene.post(delivered=True)
    assert scene.add(count=100) == 100
    assert scene.scheduler.full_projects() == {"one"}


def test_endpoints_that_hang_leave_a_fifth_of_the_places(scene: Scene) -> None:
    """A proven endpoint gets its places immediately, however many others hang; a new one waits for one of theirs."""
    for _ in range(30):
        scene.post(delivered=True, project="proven")
    for number in range(LIMITS.unproven_posts):
        scene.add(f"hangs {number}", count=2)
    hanging = scene.take()
    assert len(hanging) == LIMITS.unproven_posts
    scene.add("new")
    assert scene.take() == []
    scene.add("proven", count=100)
    assert [turn.delivery.event.project_id for turn in scene.take()] == ["proven"] * HIGHEST_LIMIT
    for turn in hanging:
        scene.scheduler.finish(turn, delivered=None)
    assert "new" in {turn.delivery.event.project_id for turn in scene.take()}


def test_proven_endpoints_do_not_starve_new_ones() -> None:
    """When all places are taken, freed ones go alternately to both kinds."""
    scene = Scene(Limits(posts=40))
    proven = [f"proven {number}" for number in range(40)]
    for project in proven:
        scene.post(delivered=True, project=project)
    for project in proven:
        scene.add(project, count=3)
    turns = scene.take()
    assert len(turns) == 40
    scene.add("new")
    scene.add("another")
    for turn in turns[:4]:
        scene.scheduler.finish(turn, delivered=True)
    assert {"new", "another"} <= {turn.delivery.event.project_id for turn in scene.take()}


@pytest.mark.parametrize(("count", "each", "free"), [(40, 22, 100), (400, 2, 14)])
def test_proven_endpoints_that_begin_to_hang_leave_places(scene: Scene, count: int, each: int, free: int) -> None:
    """If many proven endpoints begin to hang at the same time, a working one and a new one still get turns."""
    hanging = [f"hangs {number}" for number in range(count)]
    for project in ("works", *hanging):
        for _ in range(30):
            scene.post(delivered=True, project=project)
    posts: Counter[str] = Counter()
    for _ in range(20):
        for project in hanging:
            scene.add(project, count=8)
        posts.update(turn.delivery.event.project_id for turn in scene.take())
    assert set(posts) == set(hanging)
    assert max(posts.values()) <= each + 1
    assert min(posts.values()) >= each
    assert LIMITS.posts - posts.total() >= free
    for _ in range(2):
        assert scene.add("works") == scene.add("new") == 1
        assert {turn.delivery.event.project_id for turn in scene.take()} == {"works", "new"}


# ---- developers


def crowd(scene: Scene, *developers: str, is_sending: bool = True) -> Counter[str]:
    """Let 3,000 new endpoints of these developers have events in turn, and hang; return the number of posts of each."""
    posts: Counter[str] = Counter()
    for _ in range(4):
        for number in range(3_000):
            developer = developers[number % len(developers)]
            scene.add(f"{developer} {number}", developer=developer)
            if is_sending and number % 100 == 0:  # So many come with one claim.
                posts.update(turn.delivery.developer_id for turn in scene.take())
    return posts


@pytest.mark.parametrize("developers", [1, 2, 20])
def test_a_developer_whose_endpoints_hang_keeps_no_other_waiting(scene: Scene, developers: int) -> None:
    """One developer's thousands of projects have limited places. Others' new endpoints are served immediately."""
    crowds = [f"crowd {number}" for number in range(developers)]
    posts = crowd(scene, *crowds)
    part = 3 / (3 * developers + 1)
    assert set(posts) == set(crowds)
    for count in posts.values():
        assert count == pytest.approx(part * LIMITS.unproven_posts, abs=3)
    assert scene.scheduler.waiting == pytest.approx(part * LIMITS.unproven_waiting * developers, abs=developers)
    assert scene.scheduler.crowded_developers() == set(crowds)
    assert scene.add("new", count=2) == 2
    assert [turn.delivery.event.project_id for turn in scene.take()] == ["new"] * 2


def test_a_crowded_developer_is_passed_over_until_half_of_its_room_is_free(scene: Scene) -> None:
    """Events that would be refused are not claimed repeatedly; later, many of them are accepted together."""
    crowd(scene, "crowd", is_sending=False)
    assert scene.scheduler.waiting == 1_500
    for _ in range(300):
        assert scene.scheduler.crowded_developers() == {"crowd"}
        assert scene.scheduler.take() is not None
    assert scene.scheduler.waiting == 1_200 == 3 * (LIMITS.unproven_waiting - 1_200) // 2
    assert not scene.scheduler.crowded_developers()
    assert scene.add("crowd 1", developer="crowd") == 1
    assert not scene.scheduler.crowded_developers()


def test_a_crowded_developers_proven_endpoints_are_spared(scene: Scene) -> None:
    """A proven endpoint is not affected by its developer's others; a new URL is not proven yet."""
    for project in ("works", "moves"):
        assert scene.scheduler.add(scene.delivery(project, developer="crowd"))
        (turn,) = scene.take()
        scene.scheduler.finish(turn, delivered=True)
    crowd(scene, "crowd")
    assert scene.scheduler.crowded_developers() == {"crowd"}
    assert scene.scheduler.spared_projects() == {"works", "moves"}
    assert not scene.scheduler.add(scene.delivery("moves", "https://example.org/", developer="crowd"))
    assert scene.scheduler.spared_projects() == {"works"}
    assert scene.add("works", developer="crowd") == 1
    assert [turn.delivery.event.project_id for turn in scene.take()] == ["works"]


def test_so_many_that_hang_that_no_more_may_wait() -> None:
    """Memory is bounded, and excess events are returned, so that events of proven endpoints are found."""
    scene = Scene(Limits(unproven_waiting=10))
    scene.post(delivered=True, project="proven")
    for number in range(20):
        scene.add(f"hangs {number}")
    assert scene.scheduler.waiting == 10
    assert scene.add("hangs") == 0
    assert scene.add("proven") == 1


def test_what_is_idle_is_forgotten_in_time() -> None:
    """A million endpoints in a year take no memory; one in use is not forgotten."""
    scene = Scene(Limits(idle_kept=5))
    scene.add("busy", count=4)
    assert len(scene.take()) == 2
    for number in range(20):
        scene.add(f"idle {number}")
        (turn,) = scene.take()
        scene.scheduler.finish(turn, delivered=True)
    assert len(scene.scheduler._idle) == 5
    assert set(scene.scheduler._busy) == {("busy", "https://example.com/")}
    assert scene.at_once("idle 19") == 3
    assert scene.at_once("idle 0") == 2
