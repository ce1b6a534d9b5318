// The phone: shows one simulated user's chat with a bot and does what a person does with it, through the control API.
// Text from people or bots is only set as textContent.

import { contactForm } from "./phone_contact.js";
import { replyKeyboard } from "./phone_keyboard.js";
import { messageElement } from "./phone_messages.js";
import { offerNewBot } from "./phone_new_bot.js";

const WAIT = 25;
const RETRY = 1_500;
const TOAST = 5_000;
const CHOICE = "taproof-sandbox-user";
const PHONE = "/sandbox/phone";

const element = (id) => document.getElementById(id);
/** Whether the demo shows the phone beside its shop. */
const isFramed = parent !== window;

/** The user whose chat is shown. The chat's reader stops when another user is chosen. */
let current = null;
let people = [];
let bots = [];
let bot = null;
let deeplink = new URL(location.href).searchParams.has("start") ? location.href : null;
let toastTimer = 0;

// ---- calls to the sandbox

class RequestFailed extends Error {}

async function request(method, path, body, signal) {
  let response;
  try {
    response = await fetch(`/sandbox/${path}`, {
      method,
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body ? JSON.stringify(body) : undefined,
      signal,
    });
  } catch {
    throw new RequestFailed("The sandbox cannot be reached. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new RequestFailed(answer.error ?? `The sandbox returned status ${response.status}.`);
  }
  return answer;
}

const act = (verb, body) => request("POST", `users/${current.id}/${verb}`, { ...body, bot: bot.username });

/** Run a control's action. The control is disabled meanwhile, so that a second click does not repeat the action. */
async function during(control, action) {
  control.disabled = true;
  try {
    return await action();
  } catch (error) {
    showToast(error.message);
    return null;
  } finally {
    control.disabled = false;
  }
}

// ---- users and bots

const fullName = (user) => [user.first_name, user.last_name].filter(Boolean).join(" ");
const nameOf = (id) => fullName(people.find((user) => user.id === id) ?? { first_name: `user ${id}` });

async function loadBots() {
  ({ bots } = await request("GET", "bots"));
  const path = location.pathname.startsWith(PHONE) ? location.pathname.slice(PHONE.length + 1) : "";
  const wanted = decodeURIComponent(path).toLowerCase();
  const found = bots.find((each) => (wanted ? each.username.toLowerCase() === wanted : each.is_first));
  bot = found ?? bots.find((each) => each.is_first);
  element("bot").replaceChildren(...bots.map((each) => new Option(`${each.name} (@${each.username})`, each.username)));
  element("bot").value = bot.username;
  element("bots").hidden = bots.length < 2;
  showBotName();
  return found ? "" : `There is no bot @${wanted} in this sandbox.`;
}

function showBotName() {
  element("bot-name").textContent = bot.name;
  element("bot-face").textContent = [...bot.name][0];
}

function chooseBot() {
  bot = bots.find((each) => each.username === element("bot").value);
  showBotName();
  deeplink = null;
  history.replaceState(null, "", bot.is_first ? PHONE : `${PHONE}/${bot.username}`);
  choose();
}

async function loadUsers(chosen) {
  const { users } = await request("GET", "users");
  people = users;
  const wanted = String(chosen ?? new URL(location.href).searchParams.get("user") ?? localStorage.getItem(CHOICE) ?? "");
  element("user").replaceChildren(
    ...users.map((user) => {
      const name = fullName(user);
      const hasRoom = user.username && !isFramed;
      return new Option(hasRoom ? `${name} (@${user.username})` : name, user.id);
    }),
  );
  if (users.some((user) => String(user.id) === wanted)) {
    element("user").value = wanted;
  }
  choose();
}

function choose() {
  current?.controller.abort();
  const id = element("user").value;
  const path = `users/${id}/messages?bot=${bot.username}`;
  current = { id, path, controller: new AbortController(), version: -1, shown: new Map() };
  localStorage.setItem(CHOICE, current.id);
  for (const name of ["attach", "new-user", "send"]) {
    element(name).disabled = false;
  }
  // Until the chat is read, it is not known whether this user has blocked the bot.
  element("block").disabled = true;
  element("messages").replaceChildren();
  element("empty").hidden = false;
  showToast("");
  follow(current);
}

/** Read the chat in a loop. Each call returns when something has changed. */
async function follow(reader) {
  while (reader === current) {
    if (document.hidden) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      continue;
    }
    reader.controller = new AbortController();
    const wait = reader.version < 0 ? "" : `&wait=${WAIT}&after=${reader.version}`;
    try {
      const chat = await request("GET", `${reader.path}${wait}`, undefined, reader.controller.signal);
      if (reader === current) {
        showChat(chat);
        if (reader.version < 0) {
          element("block").disabled = false;
        }
        reader.version = chat.version;
      }
    } catch (error) {
      if (reader === current && !reader.controller.signal.aborted) {
        showToast(error.message);
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
    }
  }
}

async function addUser() {
  const fields = Object.fromEntries([...new FormData(element("person").querySelector("form"))].filter(([, text]) => text));
  const user = await during(element("new-user"), () => request("POST", "users", fields));
  if (user) {
    element("person").querySelector("form").reset();
    await loadUsers(user.id);
  }
}

// ---- the person's actions

async function start() {
  const opened = await during(element("start"), () =>
    deeplink ? request("POST", `users/${current.id}/open`, { deeplink }) : act("send", { text: "/start" }),
  );
  if (!opened) {
    return;
  }
  if (deeplink) {
    deeplink = null;
    // Reloading the page must not open the session again, and its token should not stay in the address bar.
    history.replaceState(null, "", location.pathname);
    if (!opened.answered) {
      showToast("The bot has not answered yet. It will answer when it is running.");
    }
  }
  await refresh();
  if (!isFramed) {
    element("messages").focus();
  }
}

async function tap(control, messageId, label) {
  const answer = await during(control, () => act("tap", { button: label, message_id: messageId }));
  if (!answer) {
    return;
  }
  if (!answer.answered) {
    showToast("The bot has not answered.");
  } else if (answer.show_alert && answer.alert) {
    element("alert-text").textContent = answer.alert;
    element("alert").showModal();
  } else {
    showToast(answer.alert ?? "");
  }
}

async function send(event) {
  event.preventDefault();
  const text = element("text").value.trim();
  if (text && (await during(element("send"), () => act("send", { text })))) {
    element("text").value = "";
  }
  element("text").focus();
}

/** Press a button of the bot's keyboard. Before it shares the user's number, the app asks for consent. */
async function press(control, button) {
  if (button.request_contact && !(await confirmShare())) {
    return;
  }
  if (await during(control, () => act("press", { button: button.text }))) {
    await refresh();
    element("messages").focus();
  }
}

function confirmShare() {
  const dialog = element("own-contact");
  element("own-number").textContent = people.find((user) => String(user.id) === current.id).phone;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "share"), { once: true }),
  );
}

async function share(contact) {
  if (await during(element("attach"), () => act("share", contact))) {
    await refresh();
  }
}

async function toggleBlock() {
  const verb = element("block").dataset.verb;
  if (await during(element("block"), () => act(verb, {}))) {
    await refresh();
  }
}

/** Show the chat as it is now, without waiting for the reader's next answer. */
async function refresh() {
  const reader = current;
  const chat = await request("GET", reader.path).catch(() => null);
  if (chat && reader === current && chat.version >= reader.version) {
    showChat(chat);
  }
}

// ---- display

function showChat(chat) {
  const list = element("messages");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const kept = new Set();
  let grown = false;
  for (const message of chat.messages) {
    kept.add(message.message_id);
    const written = JSON.stringify(message);
    const shown = current.shown.get(message.message_id);
    // An unchanged message keeps its element, and so the focus and a screen reader's position.
    if (shown?.written === written) {
      continue;
    }
    const item = messageElement(message, nameOf, tap);
    if (shown) {
      const hadFocus = shown.item.contains(document.activeElement);
      shown.item.replaceWith(item);
      if (hadFocus) {
        list.focus();
      }
    } else {
      list.append(item);
      grown = true;
    }
    current.shown.set(message.message_id, { item, written });
  }
  for (const [id, { item }] of current.shown) {
    if (!kept.has(id)) {
      item.remove();
      current.shown.delete(id);
    }
  }
  element("empty").hidden = chat.messages.length > 0;
  showControls(chat);
  // This comes last, because the keyboard takes some of the space.
  if (grown || atEnd) {
    list.scrollTop = list.scrollHeight;
  }
}

function showControls(chat) {
  const offersStart = !chat.has_blocked && (deeplink !== null || !chat.has_started);
  const hadFocus = document.activeElement === element("start");
  // Beside the shop, the phone opens the link by itself, so it waits for one.
  element("start").hidden = !offersStart || (isFramed && deeplink === null);
  element("composer").hidden = offersStart || chat.has_blocked;
  element("foot").hidden = element("start").hidden && element("composer").hidden;
  keyboard.show(element("composer").hidden ? null : chat.reply_keyboard);
  if (offersStart && !isFramed && document.activeElement === document.body) {
    element("start").focus();
  } else if (hadFocus && !offersStart) {
    element("messages").focus();
  }
  element("block").dataset.verb = chat.has_blocked ? "unblock" : "block";
  element("block").textContent = chat.has_blocked ? "Unblock bot" : "Block bot";
}

function showToast(text) {
  clearTimeout(toastTimer);
  element("toast").textContent = text;
  if (text) {
    toastTimer = setTimeout(showToast, TOAST, "");
  }
}

// ---- start

const keyboard = replyKeyboard(element, press);
const contact = contactForm(element, fullName, share);
element("bot").addEventListener("change", chooseBot);
element("attach").addEventListener("click", () => contact.open(people, current.id));
element("user").addEventListener("change", choose);
document.addEventListener("visibilitychange", () => {
  // A browser opens only a few connections to one address, and hidden tabs must not use them all.
  if (document.hidden) {
    current?.controller.abort();
  }
});
element("start").addEventListener("click", start);
element("composer").addEventListener("submit", send);
element("block").addEventListener("click", toggleBlock);
element("new-user").addEventListener("click", () => element("person").showModal());
element("person").addEventListener("close", () => {
  if (element("person").returnValue === "add") {
    element("person").returnValue = "";
    addUser();
  }
});
if (isFramed) {
  document.documentElement.dataset.framed = "";
  element("empty").textContent = "Sign-in requests appear here.";
}
/** The link that the demo asked to open before the users were known. */
let asked = null;
addEventListener("message", ({ origin, source, data }) => {
  if (origin !== location.origin || source !== parent || typeof data?.open !== "string") {
    return;
  }
  if (new URL(data.open, location.href).pathname !== location.pathname) {
    location.assign(data.open); // The project has its own bot, so the link leads to another chat.
  } else if (current) {
    deeplink = data.open;
    start();
  } else {
    asked = data.open;
  }
});
try {
  const problem = await loadBots();
  await loadUsers();
  if (asked) {
    deeplink = asked;
    await start();
  }
  showToast(problem);
  offerNewBot(element, (fields) =>
    during(element("start"), () => request("POST", `users/${current.id}/newbot`, fields)),
  );
} catch (error) {
  showToast(error.message);
}
