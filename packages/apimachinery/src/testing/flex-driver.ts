import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Shell command that prints the successful response of a flex volume driver. */
export const success = `echo '{"status":"Success"}'`;

/**
 * Installs a driver executable: a script that appends its arguments, one per line, to the file `requested` in its directory, and
 * runs the script in `answers` for the command. Other commands are reported as not supported.
 * @param dir `<plugin dir>/vendor~driver`
 */
export async function installFlexDriver(dir: string, name: string, answers: Readonly<Record<string, string>>): Promise<void> {
  const cases = Object.entries(answers).map(([command, script]) => `${command}) ${script} ;;`);
  const text = [
    "#!/bin/sh",
    `printf '%s\\n' "$@" >> "$(dirname "$0")/requested"`,
    'case "$1" in',
    ...cases,
    `*) echo '{"status":"Not supported"}' ; exit 1 ;;`,
    "esac",
    "",
  ].join("\n");
  await mkdir(dir, { recursive: true });
  // Write and rename: writing to a running executable fails with ETXTBSY.
  const fresh = join(dir, `.${name}.new`);
  await writeFile(fresh, text);
  await chmod(fresh, 0o755);
  await rename(fresh, join(dir, name));
}
