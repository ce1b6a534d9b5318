// The phone: shows one pretend user's chat with the bot and does what a person does with it, through the control API.
// What anybody wrote only ever becomes textContent.

const WAIT = 25;
const RETRY = 1_500;
const TOAST = 5_000;
const CHOICE = "taproof-sandbox-user";

/** What a MessageEntity is shown as; a link is shown, not followed: the phone leads nowhere. */
const ELEMENTS = {
  bold: "b",
  italic: "i",
  underline: "u",
  strikethrough: "s",
  spoiler: "mark",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
  text_link: "span",
};

const element = (id) => document.getElementById(id);

/** The user whose chat is shown: the reader of that chat ends as soon as another takes this place. */
let current = null;
let deeplink = new URL(location.href).searchParams.has("start") ? location.href : null;
let toastTimer = 0;

// ---- talking to the sandbox

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
    throw new RequestFailed(answer.error ?? `The sandbox answered with status ${response.status}.`);
  }
  return answer;
}

const act = (verb, body) => request("POST", `users/${current.id}/${verb}`, body);

/** Do what a control asks for; it stays disabled meanwhile, so that a second click does nothing twice. */
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

// ---- users

async function loadUsers(chosen) {
  const { users } = await request("GET", "users");
  const wanted = String(chosen ?? new URL(location.href).searchParams.get("user") ?? localStorage.getItem(CHOICE) ?? "");
  element("user").replaceChildren(
    ...users.map((user) => {
      const name = [user.first_name, user.last_name].filter(Boolean).join(" ");
      return new Option(user.username ? `${name} (@${user.username})` : name, user.id);
    }),
  );
  if (users.some((user) => String(user.id) === wanted)) {
    element("user").value = wanted;
  }
  choose();
}

function choose() {
  current?.controller.abort();
  current = { id: element("user").value, controller: new AbortController(), version: -1, shown: new Map() };
  localStorage.setItem(CHOICE, current.id);
  element("messages").replaceChildren();
  element("empty").hidden = false;
  showToast("");
  follow(current);
}

/** Read the chat again and again; each time the answer comes when something has changed. */
async function follow(reader) {
  while (reader === current) {
    if (document.hidden) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      continue;
    }
    reader.controller = new AbortController();
    const wait = reader.version < 0 ? "" : `?wait=${WAIT}&after=${reader.version}`;
    try {
      const chat = await request("GET", `users/${reader.id}/messages${wait}`, undefined, reader.controller.signal);
      if (reader === current) {
        showChat(chat);
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

// ---- what a person does

async function start() {
  const opened = await during(element("start"), () =>
    deeplink ? act("open", { deeplink }) : act("send", { text: "/start" }),
  );
  if (!opened) {
    return;
  }
  if (deeplink) {
    deeplink = null;
    // Reloading the page must not open the session again, and its token need not stay in the address bar.
    history.replaceState(null, "", location.pathname);
    if (!opened.answered) {
      showToast("The bot has not answered yet. It will when it is running.");
    }
  }
  await refresh();
  element("messages").focus();
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

async function toggleBlock() {
  const verb = element("block").dataset.verb;
  if (await during(element("block"), () => act(verb, {}))) {
    await refresh();
  }
}

/** Show the chat as it is now, without waiting for the reader's next answer. */
async function refresh() {
  const reader = current;
  const chat = await request("GET", `users/${reader.id}/messages`).catch(() => null);
  if (chat && reader === current && chat.version >= reader.version) {
    showChat(chat);
  }
}

// ---- showing it

function showChat(chat) {
  const list = element("messages");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const kept = new Set();
  let grown = false;
  for (const message of chat.messages) {
    kept.add(message.message_id);
    const written = JSON.stringify(message);
    const shown = current.shown.get(message.message_id);
    // A message that has not changed keeps its element, and so the focus and what a screen reader has read.
    if (shown?.written === written) {
      continue;
    }
    const item = messageElement(message);
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
  if (grown || atEnd) {
    list.scrollTop = list.scrollHeight;
  }
  element("empty").hidden = chat.messages.length > 0;
  showControls(chat);
}

function showControls(chat) {
  const offersStart = !chat.has_blocked && (deeplink !== null || !chat.has_started);
  const hadFocus = document.activeElement === element("start");
  element("start").hidden = !offersStart;
  element("composer").hidden = offersStart || chat.has_blocked;
  if (offersStart && document.activeElement === document.body) {
    element("start").focus();
  } else if (hadFocus && !offersStart) {
    element("messages").focus();
  }
  element("block").dataset.verb = chat.has_blocked ? "unblock" : "block";
  element("block").textContent = chat.has_blocked ? "Unblock bot" : "Block bot";
}

function messageElement(message) {
  const item = document.createElement("li");
  item.dataset.message = message.message_id;
  item.dataset.from = message.from;
  item.className = `from-${message.from}`;
  const bubble = document.createElement("div");
  bubble.className = "bubble";
  const text = document.createElement("div");
  text.dir = "auto";
  // As in the real messenger, the payload of a deeplink is not shown to the person who opened it.
  const isStart = message.from === "user" && message.text.startsWith("/start ");
  text.append(isStart ? "/start" : formatted(message.text, message.entities));
  const when = document.createElement("time");
  when.className = "when";
  when.dateTime = message.date;
  when.textContent = `${message.edited ? "edited " : ""}${clock(message.date)}`;
  bubble.append(text, when);
  item.append(bubble);
  if (message.buttons.length) {
    item.append(buttonsElement(message));
  }
  return item;
}

function buttonsElement(message) {
  const rows = document.createElement("div");
  rows.dataset.buttons = message.message_id;
  for (const labels of message.buttons) {
    const row = document.createElement("div");
    for (const label of labels) {
      const button = document.createElement("button");
      button.type = "button";
      button.dir = "auto";
      button.textContent = label;
      button.addEventListener("click", () => tap(button, message.message_id, label));
      row.append(button);
    }
    rows.append(row);
  }
  return rows;
}

/** Build elements from a text and its entities, whose offsets count UTF-16 units, as JavaScript's strings do. */
function formatted(text, entities) {
  const root = document.createDocumentFragment();
  const open = [{ node: root, end: text.length }];
  let position = 0;
  const writeUpTo = (end) => {
    while (position < end) {
      while (open.length > 1 && open.at(-1).end <= position) {
        open.pop();
      }
      const next = Math.min(end, open.at(-1).end);
      open.at(-1).node.append(text.slice(position, next));
      position = next;
    }
    while (open.length > 1 && open.at(-1).end <= position) {
      open.pop();
    }
  };
  for (const entity of entities) {
    if (!(entity.type in ELEMENTS)) {
      continue;
    }
    writeUpTo(entity.offset);
    const node = document.createElement(ELEMENTS[entity.type]);
    if (entity.type === "text_link") {
      node.className = "link";
      node.title = entity.url;
    }
    open.at(-1).node.append(node);
    open.push({ node, end: Math.min(entity.offset + entity.length, open.at(-1).end) });
  }
  writeUpTo(text.length);
  return root;
}

function clock(date) {
  return new Date(date).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function showToast(text) {
  clearTimeout(toastTimer);
  element("toast").textContent = text;
  if (text) {
    toastTimer = setTimeout(showToast, TOAST, "");
  }
}

// ---- start

element("user").addEventListener("change", choose);
document.addEventListener("visibilitychange", () => {
  // A browser keeps only a few connections to one address: tabs that nobody looks at must not use them up.
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
loadUsers().catch((error) => showToast(error.message));
