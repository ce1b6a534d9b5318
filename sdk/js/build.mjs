// Builds the scripts that the service sends to browsers: node build.mjs [folder]
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const { version } = JSON.parse(readFileSync(here("package.json"), "utf8"));

/** Minifies the style sheet, which is a string in the source, so esbuild would not minify it. */
const smallStyle = {
  name: "small-style",
  setup: (/** @type {import("esbuild").PluginBuild} */ { onLoad }) =>
    onLoad({ filter: /src[/\\]style\.js$/ }, async ({ path }) => {
      const { STYLE } = await import(path);
      const { code } = await transform(STYLE, { loader: "css", minify: true, target: "safari16" });
      return { contents: `export const STYLE = ${JSON.stringify(code.trim())};` };
    }),
};

const common = {
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
};

await build({
  ...common,
  entryPoints: { taproof: here("src/index.js"), "mini-app": here("src/mini_app.js") },
  outdir: process.argv[2] ?? here(`../../src/taproof/http/static/sdk/${version}`),
  banner: { js: `/*! Taproof ${version}, Apache-2.0 */` },
  plugins: [smallStyle],
});
await build({
  ...common,
  entryPoints: [here("src/qr_code.js")],
  outfile: `${process.argv[2] ?? here("../../src/taproof/oidc/pages/static")}/qr_code.js`,
});
