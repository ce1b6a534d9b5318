"""Each entry point loads with `import` and with `require`, as one copy, and TypeScript finds its types in both."""

import json
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sdk/js"
MANIFEST = json.loads((PACKAGE / "package.json").read_text("utf-8"))
ENTRIES = [f"taproof{entry[1:]}" for entry in MANIFEST["exports"]]
OLD_NODE = "--no-experimental-require-module"
"""With it, `require` cannot load an ES module, as in Node 20.0 to 20.18 and in Jest."""


def test_require_and_import() -> None:
    """Both return the same objects, so that `instanceof` works for an error of the other one."""
    script = """
        const differ = async (entry) => {
          const [required, imported] = [require(entry), await import(entry)];
          const names = Object.keys(await import(new URL(ESM[entry], "file://" + process.cwd() + "/")));
          const same = names.every((name) => required[name] !== undefined && required[name] === imported[name]);
          return names.length > 0 && same ? [] : [entry];
        };
        const ESM = JSON.parse(process.argv[1]);
        Promise.all(Object.keys(ESM).map(differ)).then((all) => console.log(JSON.stringify(all.flat())));
    """
    modules = {entry: paths["default"] for entry, paths in zip(ENTRIES, MANIFEST["exports"].values(), strict=True)}
    command = ["node", OLD_NODE, "--input-type=commonjs", "-e", script, json.dumps(modules)]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_conditions() -> None:
    """A bundler takes the ES modules, even for `require`; Node, and Jest with or without jsdom, take CommonJS."""
    for entry, paths in MANIFEST["exports"].items():
        assert next(iter(paths)) == "module", entry
        assert paths["module"] == paths["default"]
        assert paths["module"].startswith("./src/")
        assert paths["node"] == paths["require"], "Jest's jsdom does not set the condition node"


@pytest.mark.parametrize("resolution", ["node16", "nodenext", "bundler"])
def test_types(tmp_path: Path, resolution: str) -> None:
    """TypeScript finds the types of each entry point, from an ES module and from a CommonJS module."""
    (tmp_path / "node_modules").mkdir()
    for each in (PACKAGE / "node_modules").iterdir():
        (tmp_path / "node_modules" / each.name).symlink_to(each)
    (tmp_path / "node_modules/taproof").symlink_to(PACKAGE)
    lines = [f'import * as m{number} from "{entry}";' for number, entry in enumerate(ENTRIES)]
    # An import without types is `any`, which would allow this.
    lines += [f"// @ts-expect-error\nm{number}.nothing;" for number in range(len(ENTRIES))]
    lines += ['import { ProofError } from "taproof/server";', 'new ProofError("x").message satisfies string;']
    for name in ("page.mts", "page.cts"):
        (tmp_path / name).write_text("\n".join(lines), "utf-8")
    module = "esnext" if resolution == "bundler" else resolution
    command = ["--noEmit", "--strict", "--target", "es2022", "--module", module, "--moduleResolution", resolution]
    command += ["--preserveSymlinks", "--skipLibCheck", "page.mts", *(["page.cts"] if resolution != "bundler" else [])]
    done = subprocess.run(
        [PACKAGE / "node_modules/.bin/tsc", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_types_for_old_resolution() -> None:
    """`moduleResolution: node10`, the default of `module: commonjs`, ignores `exports`: it finds the same types."""
    old = {".": [MANIFEST["types"]]} | {f"./{name}": paths for name, paths in MANIFEST["typesVersions"]["*"].items()}
    assert old == {entry: [paths["require"]["types"]] for entry, paths in MANIFEST["exports"].items()}
    assert MANIFEST["main"] == MANIFEST["exports"]["."]["require"]["default"]
