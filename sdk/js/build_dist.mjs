// Builds dist/, which is committed: node build_dist.mjs [folder]
// cjs/: the package as CommonJS with its types. esm/: the types of the ES modules in src/.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const dist = resolve(process.argv[2] ?? here("dist"));
const tsc = (/** @type {string} */ folder, /** @type {string[]} */ ...options) =>
  execFileSync(here("node_modules/.bin/tsc"), ["--declaration", ...options], { cwd: folder, stdio: "inherit" });

rmSync(dist, { recursive: true, force: true });
tsc(here("."), "--emitDeclarationOnly", "--outDir", join(dist, "esm"));

// The nearest package.json tells TypeScript, and later Node, that these files are CommonJS.
const copy = mkdtempSync(join(tmpdir(), "taproof-cjs-"));
try {
  cpSync(here("src"), join(copy, "src"), { recursive: true });
  cpSync(here("tsconfig.json"), join(copy, "tsconfig.json"));
  symlinkSync(here("node_modules"), join(copy, "node_modules"));
  writeFileSync(join(copy, "package.json"), '{ "type": "commonjs" }\n');
  for (const name of readdirSync(join(copy, "src"))) {
    const path = join(copy, "src", name);
    if (!name.endsWith(".js")) continue;
    // CommonJS has no import.meta. As in any bundle, `baseUrl` has no default there.
    writeFileSync(path, readFileSync(path, "utf8").replaceAll("import.meta.url", '"file:///"'));
  }
  tsc(copy, "--outDir", join(dist, "cjs"));
  cpSync(join(copy, "package.json"), join(dist, "cjs/package.json"));
} finally {
  rmSync(copy, { recursive: true });
}
