// Displays a chat's messages. Text from people or bots is only set as textContent.

/** The element for each type of MessageEntity. Links are shown, but cannot be followed. */
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

/**
 * Build the element of one message.
 * @param message in the control API's format
 * @param nameOf returns the name of a simulated user by their id
 * @param tap called with the button, the message's id and the button's label
 */
export function messageElement(message, nameOf, tap) {
  const item = document.createElement("div");
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
  if (message.protected) {
    when.textContent += " 🔒";
    when.title = "This message cannot be forwarded or saved.";
  }
  if (message.forwarded_from !== null) {
    bubble.append(line("small", "forwarded", `Forwarded from ${nameOf(message.forwarded_from)}`));
  }
  bubble.append(message.contact ? contactElement(message.contact) : text, when);
  item.append(bubble);
  if (message.buttons.length) {
    item.append(buttonsElement(message, tap));
  }
  return item;
}

function buttonsElement(message, tap) {
  const rows = document.createElement("div");
  rows.dataset.buttons = message.message_id;
  for (const shown of message.inline_keyboard) {
    const row = document.createElement("div");
    for (const each of shown) {
      row.append(each.url === undefined ? tapElement(message, each.text, tap) : linkElement(each));
    }
    rows.append(row);
  }
  return rows;
}

function tapElement(message, label, tap) {
  const button = document.createElement("button");
  button.type = "button";
  button.dir = "auto";
  button.textContent = label;
  button.addEventListener("click", () => tap(button, message.message_id, label));
  return button;
}

/** A button that opens a web page in a browser tab, and sends the bot nothing. It tells that page no address. */
function linkElement(button) {
  const link = document.createElement("a");
  link.dir = "auto";
  link.textContent = button.text;
  if (/^https?:/.test(button.url)) {
    link.href = button.url;
  }
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

function contactElement(contact) {
  const card = document.createElement("div");
  card.className = "contact";
  const name = [contact.first_name, contact.last_name].filter(Boolean).join(" ");
  const owner = contact.user_id === undefined ? "not known to the messenger" : `user ${contact.user_id}`;
  card.append(line("strong", "", name), line("span", "", contact.phone_number), line("small", "", owner));
  return card;
}

function line(tag, className, text) {
  const shown = document.createElement(tag);
  shown.className = className;
  shown.dir = "auto";
  shown.textContent = text;
  return shown;
}

/** Build elements from a text and its entities, whose offsets are in UTF-16 units, as in JavaScript strings. */
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
