"use client";
// Sign-in for React 18 and 19: the button as a component, and a hook for your own page. Both can be rendered on a server,
// and StrictMode can mount them twice.

export { TaproofButton } from "./button.js";
export { useTaproof } from "./use_taproof.js";
