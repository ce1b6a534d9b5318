"use strict";
"use client";
Object.defineProperty(exports, "__esModule", { value: true });
exports.useTaproof = exports.TaproofButton = void 0;
// Sign-in for React 18 and 19: the button as a component, and a hook for your own page. Both can be rendered on a server,
// and StrictMode can mount them twice.
var button_js_1 = require("./button.js");
Object.defineProperty(exports, "TaproofButton", { enumerable: true, get: function () { return button_js_1.TaproofButton; } });
var use_taproof_js_1 = require("./use_taproof.js");
Object.defineProperty(exports, "useTaproof", { enumerable: true, get: function () { return use_taproof_js_1.useTaproof; } });
