// The dialog with which a person creates the bot that a link suggests, as the real app shows it.

const NEW_BOT = "/sandbox/newbot/";

/**
 * Offer to create a bot if the page was opened with such a link.
 *
 * @param {(id: string) => HTMLElement} element finds an element of the page
 * @param {(fields: object) => Promise<object | null>} create creates the bot; null if that failed
 */
export function offerNewBot(element, create) {
  if (!location.pathname.startsWith(NEW_BOT)) {
    return;
  }
  const link = location.href;
  const dialog = element("new-bot");
  const form = dialog.querySelector("form");
  form.elements.username.value = decodeURIComponent(location.pathname.split("/")[4]);
  form.elements.name.value = new URL(link).searchParams.get("name") ?? "";
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue === "create") {
      const made = await create({ link, username: form.elements.username.value, name: form.elements.name.value });
      if (made) {
        location.assign(`/sandbox/phone/${made.username}`);
      }
    }
  });
  dialog.showModal();
}
