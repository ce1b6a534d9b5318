"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
// Draws the QR code of the OpenID provider's sign-in page. The service serves this script; the package does not export it.
const qr_js_1 = require("./qr.js");
const SVG = "http://www.w3.org/2000/svg";
/** The element that contains the service's drawing, for browsers without scripts. */
const fallback = document.getElementById("qr-code");
if (fallback) {
    const { link = "", label = "" } = fallback.dataset;
    const drawn = (0, qr_js_1.qrCodeOf)(link);
    if (drawn) {
        const svg = document.createElementNS(SVG, "svg");
        const path = document.createElementNS(SVG, "path");
        svg.setAttribute("class", "qr-code");
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", label);
        svg.setAttribute("viewBox", drawn.viewBox);
        path.setAttribute("d", drawn.path);
        svg.append(path);
        fallback.replaceWith(svg);
    }
    else {
        // The link is too long for this encoder: load the service's drawing. With scripts, its element is only text.
        fallback.outerHTML = fallback.textContent ?? "";
    }
}
