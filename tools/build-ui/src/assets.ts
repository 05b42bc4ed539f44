import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

interface UiAssets {
  /** By file name; all files must be served from one folder. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Paths of all sources, third-party ones included, below the root. */
  readonly inputs: readonly string[];
}

const sourceFolder = "packages/ui/src";

/**
 * Bundles the page that the API server serves below /ui: index.html, page.js, worker.js, style.css and fonts.
 * Reproducible, independent of the location of the repository.
 * @param root the repository
 */
export async function uiAssets(root: string): Promise<UiAssets> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      page: `${sourceFolder}/page.tsx`,
      worker: `${sourceFolder}/worker/main.ts`,
      style: `${sourceFolder}/style/style.css`,
    },
    outdir: "out",
    write: false,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2023",
    conditions: ["cox-source"],
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".woff2": "file" },
    assetNames: "[name]",
    metafile: true,
    legalComments: "none",
    logLevel: "error",
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  for (const name of ["index.html", "icon.svg"]) files.set(name, readFileSync(join(root, sourceFolder, name)));
  return { files, inputs: Object.keys(metafile.inputs) };
}
