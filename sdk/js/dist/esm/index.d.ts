export { SignInError } from "./errors.js";
export { takeReturnCode } from "./return_code.js";
export { resume, signIn } from "./sign_in.js";
export { TaproofButton } from "./element.js";
export type SignInOptions = import("./sign_in.js").SignInOptions;
export type SignInResult = import("./sign_in.js").SignInResult;
export type Confirmed = import("./sign_in.js").Confirmed;
export type Ended = import("./sign_in.js").Ended;
export type OtherBrowser = import("./sign_in.js").OtherBrowser;
export type Hint = import("./sign_in.js").Hint;
export type Identity = import("./sign_in.js").Identity;
export type WaitingStatus = import("./sign_in.js").WaitingStatus;
export type SignInLink = import("./link.js").SignInLink;
/**
 * @typedef {import("./sign_in.js").SignInOptions} SignInOptions
 * @typedef {import("./sign_in.js").SignInResult} SignInResult
 * @typedef {import("./sign_in.js").Confirmed} Confirmed
 * @typedef {import("./sign_in.js").Ended} Ended
 * @typedef {import("./sign_in.js").OtherBrowser} OtherBrowser
 * @typedef {import("./sign_in.js").Hint} Hint
 * @typedef {import("./sign_in.js").Identity} Identity
 * @typedef {import("./sign_in.js").WaitingStatus} WaitingStatus
 * @typedef {import("./link.js").SignInLink} SignInLink
 */
