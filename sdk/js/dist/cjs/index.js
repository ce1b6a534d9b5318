"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.TaproofButton = exports.signIn = exports.resume = exports.takeReturnCode = exports.SignInError = void 0;
var errors_js_1 = require("./errors.js");
Object.defineProperty(exports, "SignInError", { enumerable: true, get: function () { return errors_js_1.SignInError; } });
var return_code_js_1 = require("./return_code.js");
Object.defineProperty(exports, "takeReturnCode", { enumerable: true, get: function () { return return_code_js_1.takeReturnCode; } });
var sign_in_js_1 = require("./sign_in.js");
Object.defineProperty(exports, "resume", { enumerable: true, get: function () { return sign_in_js_1.resume; } });
Object.defineProperty(exports, "signIn", { enumerable: true, get: function () { return sign_in_js_1.signIn; } });
var element_js_1 = require("./element.js");
Object.defineProperty(exports, "TaproofButton", { enumerable: true, get: function () { return element_js_1.TaproofButton; } });
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
