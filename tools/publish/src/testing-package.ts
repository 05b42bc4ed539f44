import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { foreignPackages, namesOfLateImports, protocolOfEtcd } from "@coxswain/deploy/bundle";
import { licencesOf } from "@coxswain/deploy/licences";
import { build } from "esbuild";

/** What users may import, by subpath. */
const entries = { ".": "index", "./resources": "resources", "./kinds": "kinds" } as const;

/**
 * Writes `@coxswain/testing` as it is published: one bundle without dependencies for Node 22 and later, types, licences.
 * @param root the repository, compiled: the types are those that the compiler wrote
 * @param folder is made
 */
export async function writeTestingPackage(root: string, folder: string): Promise<void> {
  const sources = "packages/testing/src";
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      index: `${sources}/index.ts`,
      resources: `${sources}/resources.ts`,
      kinds: `${sources}/kinds.ts`,
      cli: `${sources}/cli.ts`,
      "certificate-thread": "packages/apimachinery/src/serving/certificate-thread.ts",
      "yaml-thread": "packages/apimachinery/src/objects/codec/yaml-thread.ts",
      "recorded-object-thread": "packages/apiserver/src/audit/recorded-object-thread.ts",
    },
    outdir: join(folder, "dist"),
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    // `using` and what else is newer is compiled away.
    target: "node22",
    conditions: ["cox-source"],
    inject: [join(root, sources, "standard-methods.ts")],
    metafile: true,
    legalComments: "none",
    logLevel: "error",
    // Bundled CommonJS modules call require() for Node's built-in modules.
    banner: { js: 'import { createRequire as requireOf } from "node:module";\nconst require = requireOf(import.meta.url);' },
    plugins: [protocolOfEtcd, namesOfLateImports],
  });
  writeTypes(root, join(folder, "dist"));
  const { name, version, license } = JSON.parse(readFileSync(join(root, "packages/testing/package.json"), "utf8"));
  const manifest = {
    name,
    version,
    description:
      "A Kubernetes 1.23 cluster inside a test's process: API server, controllers, scheduler, fake nodes, virtual time",
    license,
    type: "module",
    engines: { node: ">=22" },
    bin: { "coxswain-testing": "dist/cli.js" },
    exports: Object.fromEntries(
      Object.entries(entries).map(([path, file]) => [path, { types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` }]),
    ),
    files: ["dist", "THIRD_PARTY_LICENSES"],
    publishConfig: { access: "public", provenance: true },
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  writeFileSync(join(folder, "THIRD_PARTY_LICENSES"), licencesOf(root, foreignPackages(Object.keys(metafile.inputs))));
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(root, "packages/testing/README.md"), join(folder, "README.md"));
}

/** Copies the declarations that the entries need, of all packages; what they import from each other becomes relative. */
function writeTypes(root: string, out: string): void {
  const places = new Map<string, string>();
  const placeOf = (file: string): string => {
    const known = places.get(file);
    if (known !== undefined) return known;
    const [, owner = "", path = ""] = /packages\/([^/]+)\/dist\/(.*)$/.exec(file) ?? [];
    const place = owner === "testing" && !path.includes("/") ? join(out, path) : join(out, "types", owner, path);
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
  for (const entry of Object.values(entries)) placeOf(join(root, "packages/testing/dist", `${entry}.d.ts`));
}

/** @returns undefined for modules of Node */
function declarationOf(root: string, importer: string, target: string): string | undefined {
  if (target.startsWith(".")) return join(dirname(importer), dirname(target), basename(target).replace(/\.[jt]s$/, ".d.ts"));
  const [, owner, path] = /^@coxswain\/([^/]+)\/(.+)$/.exec(target) ?? [];
  return owner === undefined ? undefined : join(root, "packages", owner, "dist", `${path}.d.ts`);
}
