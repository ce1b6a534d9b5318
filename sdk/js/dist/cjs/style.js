"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.STYLE = void 0;
/** The style of the button and its panel. Colours follow the page and its color-scheme where possible. */
exports.STYLE = `
:host {
  display: inline-block;
  --accent: var(--taproof-accent, #0b6cae);
  --on-accent: var(--taproof-on-accent, #fff);
  --radius: var(--taproof-radius, 10px);
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button, summary { font: inherit; cursor: pointer; }
:focus-visible { outline: 3px solid #2b8ad0; outline-offset: 2px; }
[part~="action"] {
  display: inline-flex;
  align-items: center;
  justify-content: center;
  gap: 0.6em;
  padding: 0.7em 1.3em;
  border: 1px solid #0000;
  border-radius: var(--radius);
  background: var(--accent);
  color: var(--on-accent);
  font-weight: 600;
  text-decoration: none;
}
[part~="action"]:hover { filter: brightness(1.12); }
[part="icon"] {
  width: 1.15em;
  height: 1.15em;
  background: currentColor;
  clip-path: polygon(0 50%, 100% 8%, 82% 92%, 47% 69%, 34% 86%, 30% 61%, 78% 27%, 23% 57%);
  forced-color-adjust: none;
}
dialog {
  width: 22rem;
  max-width: calc(100% - 2rem);
  padding: 1.5rem 1.5rem 1rem;
  border: 1px solid #8885;
  border-radius: calc(var(--radius) * 1.6);
  box-shadow: 0 1rem 3rem #0005;
  font: 1rem/1.45 var(--taproof-font, system-ui), sans-serif;
  text-align: center;
  white-space: normal;
}
dialog::backdrop { background: #0008; }
dialog > * { margin: 0 0 1rem; }
[part="title"] { margin-inline: 2.25rem; font-size: 1.1rem; font-weight: 600; }
[part="close"] {
  position: absolute;
  inset-block-start: 0.9rem;
  inset-inline-end: 0.9rem;
  width: 2.4rem;
  height: 2.4rem;
  border: 1px solid #0000;
  border-radius: 50%;
  background: none;
  color: inherit;
}
[part="close"]:hover, [part="copy"]:hover { background: #8883; }
[part="code"] {
  border-radius: var(--radius);
  max-width: 100%;
  image-rendering: pixelated;
  forced-color-adjust: none;
  vertical-align: top;
}
/* Never hidden, because screen readers do not announce an element that was hidden. */
[part="match"] { margin: 0; }
[part="number"] { display: block; font-size: 3rem; }
[part="status"]::before {
  content: "";
  display: inline-block;
  width: 0.7em;
  height: 0.7em;
  margin-inline-end: 0.5em;
  border: 0.15em solid;
  border-inline-end-color: #0000;
  border-radius: 50%;
}
[data-ended] [part="status"] { font-size: 1.1rem; }
[data-ended] [part="status"]::before { display: none; }
[part="detail"] { overflow-wrap: anywhere; }
[part="help"] { font-size: 0.9rem; }
[part="send"] { display: block; margin-block-start: 0.6rem; }
[part="command"] {
  display: block;
  margin: 0.5rem 0;
  padding: 0.6rem;
  border-radius: var(--radius);
  background: #8882;
  text-align: left;
  word-break: break-all;
  user-select: all;
}
[part="copy"] {
  padding: 0.3em 1em;
  border: 1px solid;
  border-radius: var(--radius);
  background: none;
  color: inherit;
}
@media (max-width: 600px) {
  dialog {
    width: 100%;
    max-width: 100%;
    margin-block-end: 0;
    border-end-start-radius: 0;
    border-end-end-radius: 0;
  }
}
@media (prefers-reduced-motion: no-preference) {
  [part="status"]::before { animation: turn 1s linear infinite; }
  @keyframes turn { to { transform: rotate(1turn); } }
}
`;
