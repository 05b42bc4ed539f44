import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  name: string;
  version: string;
  license?: string | { type: string };
}

/**
 * SBOM of the release in CycloneDX 1.5: Node and each bundled package, with its hash from the pnpm lock file. Reproducible:
 * without timestamp and serial number.
 * @param packages their folders below `root`
 */
export function billOfMaterials(root: string, packages: readonly string[]): string {
  const lock = readFileSync(join(root, "pnpm-lock.yaml"), "utf8");
  const own = manifestOf(root);
  const components = packages
    .map((folder) => component(manifestOf(join(root, folder)), lock))
    .filter((one, index, all) => all.findIndex((other) => other.purl === one.purl) === index)
    .sort((a, b) => (a.purl < b.purl ? -1 : 1));
  const version = process.versions.node;
  const node = { type: "application", name: "node", version, purl: `pkg:generic/node@${version}` };
  const metadata = { component: { type: "application", name: own.name, version: own.version } };
  return `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata, components: [node, ...components] }, null, 2)}\n`;
}

const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

function component({ name, version, license }: Manifest, lock: string) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const licence = typeof license === "object" ? license.type : license;
  return {
    type: "library",
    name,
    version,
    ...(licence !== undefined && { licenses: [{ expression: licence }] }),
    hashes: [{ alg: "SHA-512", content: hashOf(lock, `${name}@${version}`) }],
    purl,
  };
}

/** @throws Error for a package that is not in the lock file, whose origin could not be verified */
function hashOf(lock: string, id: string): string {
  const entry = [`  '${id}':\n`, `  ${id}:\n`].map((text) => lock.indexOf(`\n${text}`)).find((at) => at !== -1);
  const hash =
    entry === undefined
      ? undefined
      : /^\s+resolution: \{integrity: sha512-([\w+/=]+)\}/.exec(lock.slice(lock.indexOf("\n", entry + 1)))?.[1];
  if (hash === undefined) throw new Error(`pnpm-lock.yaml has no hash of ${id}`);
  return Buffer.from(hash, "base64").toString("hex");
}
