import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  name: string;
  version: string;
  license?: string | { type: string };
}

/**
 * Name, version, licence and licence text of each bundled package.
 * @param packages their folders below `root`
 * @throws Error for a package without licence information
 */
export function licencesOf(root: string, packages: readonly string[]): string {
  return packages
    .map((folder) => section(join(root, folder)))
    .sort()
    .join("\n");
}

function section(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest; // cast: packages have a name and a version
  const kind = typeof license === "object" ? license.type : license;
  if (!kind) throw new Error(`${name} ${version} does not name its licence`);
  const texts = readdirSync(folder)
    .filter((file) => /^(?:licen[cs]e|notice|copying)(?:[.-].*)?$/i.test(file) && existsSync(join(folder, file)))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  return `==== ${name} ${version}: ${kind}\n\n${texts.map((text) => `${text}\n\n`).join("")}`;
}
