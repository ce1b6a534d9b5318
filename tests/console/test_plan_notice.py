"""The pages of projects warn when the plan has few or no sign-ins left this month."""

from tests.console.conftest import Installation, Visitor
from tests.console.test_projects import LIST

from taproof.core.clock import DAY
from taproof.core.identity import MessengerIdentity


async def test_the_usage_is_shown_with_the_projects(console: Installation, visitor: Visitor) -> None:
    """There is no notice below four fifths, then the usage, then that nothing can start; it resets with the month."""
    ada = await console.sign_in(await console.add_developer("grace@example.com", "pro"))
    project, _ = await ada.create_project()
    await visitor.create_project()
    for used in range(6):
        for page in (LIST, f"{LIST}/{project.id}"):
            shown = await ada.get(page)
            told = [text for text in shown.texts(".//p[@class='notice wait']") if "You have used 4" in text]
            refused = [text for text in shown.texts(".//p[@class='error']") if "you have used all" in text]
            assert (len(told), len(refused)) == (int(used == 4), int(used == 5)), (page, used)
            if told:
                assert told[0].startswith("You have used 4 of the 5 sign-ins of your plan this month.")
            if refused:
                assert refused[0].startswith("No sign-ins can be started: you have used all 5 sign-ins of your plan")
            assert bool(shown.all(".//main//a[@href='/console/account']")) == (used >= 4)
        if used < 5:
            created = await ada.start_session(project.id)
            await console.messenger.confirm(created.deeplink, MessengerIdentity(str(used + 1), "User", ""))
        console.clock.now += 11_000  # Past what a process remembers of the count.
    assert "ave used" not in (await visitor.get(LIST)).text
    console.clock.now += 31 * DAY
    ada = await console.sign_in(ada.developer)
    assert "ave used" not in (await ada.get(LIST)).text
