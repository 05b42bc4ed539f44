import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { uiAssets } from "@coxswain/build-ui/assets";
import { foreignPackages, namesOfLateImports, protocolOfEtcd, replacedModules } from "@coxswain/deploy/bundle";
import { licencesOf } from "@coxswain/deploy/licences";
import { build } from "esbuild";
import type { PublishedPackage } from "./packages.ts";

/** Worker threads, which their modules load from the same folder. */
const threads = {
  "certificate-thread": "packages/apimachinery/src/serving/certificate-thread.ts",
  "yaml-thread": "packages/apimachinery/src/objects/codec/yaml-thread.ts",
  "recorded-object-thread": "packages/apiserver/src/audit/recorded-object-thread.ts",
};

/**
 * Writes a package as published: a bundle without dependencies, types, licences. Only the declared entries can be imported.
 * @param root the compiled repository, which has the declarations
 * @param out the folder to create
 */
export async function writePackage(root: string, published: PublishedPackage, out: string): Promise<void> {
  const { folder, description, entries, programs, node, inject, hasUi } = published;
  const sources = `packages/${folder}/src`;
  const files = [...Object.values(entries), ...Object.values(programs)];
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { ...Object.fromEntries(files.map((file) => [basename(file), `${sources}/${file}.ts`])), ...threads },
    outdir: join(out, "dist"),
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    // Transpiles `using` and other syntax that this Node lacks.
    target: `node${node}`,
    conditions: ["cox-source"],
    inject: inject.map((file) => join(root, file)),
    metafile: true,
    legalComments: "none",
    logLevel: "error",
    // Bundled CommonJS modules call require() for Node's built-in modules.
    banner: { js: 'import { createRequire as requireOf } from "node:module";\nconst require = requireOf(import.meta.url);' },
    plugins: [replacedModules, protocolOfEtcd, namesOfLateImports],
  });
  const inputs = Object.keys(metafile.inputs);
  if (hasUi) {
    const ui = await uiAssets(root);
    mkdirSync(join(out, "dist/ui"));
    for (const [name, content] of ui.files) writeFileSync(join(out, "dist/ui", name), content);
    inputs.push(...ui.inputs);
  }
  writeTypes(root, folder, Object.values(entries), join(out, "dist"));
  const { name, version, license } = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
  const manifest = {
    name,
    version,
    description,
    license,
    type: "module",
    engines: { node: `>=${node}` },
    ...(Object.keys(programs).length > 0 && { bin: pathsOf(programs) }),
    exports: Object.fromEntries(
      Object.entries(entries).map(([path, file]) => [
        path,
        { types: `./dist/${basename(file)}.d.ts`, default: `./dist/${basename(file)}.js` },
      ]),
    ),
    files: ["dist", "THIRD_PARTY_LICENSES"],
    publishConfig: { access: "public", provenance: true },
  };
  writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  writeFileSync(join(out, "THIRD_PARTY_LICENSES"), licencesOf(root, foreignPackages(inputs)));
  cpSync(join(root, "LICENSE"), join(out, "LICENSE"));
  cpSync(join(root, "packages", folder, "README.md"), join(out, "README.md"));
}

const pathsOf = (programs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(programs).map(([program, file]) => [program, `dist/${file}.js`]));

/** Copies the declarations that the entries need, from all packages, and makes imports between these relative. */
function writeTypes(root: string, folder: string, entries: readonly string[], out: string): void {
  const entryFiles = new Map(
    entries.map((entry) => [join(root, "packages", folder, "dist", `${entry}.d.ts`), join(out, `${basename(entry)}.d.ts`)]),
  );
  const places = new Map<string, string>();
  const placeOf = (file: string): string => {
    const known = places.get(file);
    if (known !== undefined) return known;
    const [, owner = "", path = ""] = /packages\/([^/]+)\/dist\/(.*)$/.exec(file) ?? [];
    const place = entryFiles.get(file) ?? join(out, "types", owner, path);
    places.set(file, place);
    if (!existsSync(file)) throw new Error(`${relative(root, file)} is missing: compile first`);
    const text = readFileSync(file, "utf8").replace(/(from |import\()"([^"]+)"/g, (whole, before: string, target: string) => {
      const found = declarationOf(root, file, target);
      if (found === undefined) return whole;
      const path = relative(dirname(place), placeOf(found)).replace(/\.d\.ts$/, ".js");
      return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
    });
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
    return place;
  };
  for (const file of entryFiles.keys()) placeOf(file);
}

/** @returns undefined for built-in modules of Node */
function declarationOf(root: string, importer: string, target: string): string | undefined {
  if (target.startsWith(".")) return join(dirname(importer), dirname(target), basename(target).replace(/\.[jt]s$/, ".d.ts"));
  const [, owner, path = "index"] = /^@coxswain\/([^/]+)(?:\/(.+))?$/.exec(target) ?? [];
  return owner === undefined ? undefined : join(root, "packages", owner, "dist", `${path}.d.ts`);
}
