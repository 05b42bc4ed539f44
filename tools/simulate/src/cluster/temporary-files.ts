import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Files that are removed when the process exits. @returns the path of each */
export function temporaryFiles<Name extends string>(contents: Readonly<Record<Name, string | Buffer>>): Record<Name, string> {
  const folder = mkdtempSync(join(tmpdir(), "cox-simulate-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const paths: Record<string, string> = {};
  for (const [name, content] of Object.entries<string | Buffer>(contents)) {
    paths[name] = join(folder, name);
    writeFileSync(paths[name], content, { mode: 0o600 });
  }
  return paths;
}
