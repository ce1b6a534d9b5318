export { TaproofButton } from "./button.js";
export { useTaproof } from "./use_taproof.js";
