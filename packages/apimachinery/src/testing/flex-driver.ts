import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What a driver of flex volumes writes that did as it was asked. */
export const success = `echo '{"status":"Success"}'`;

/**
 * Writes a driver's program: a script that notes what it is asked, an argument a line, in the file `asked` beside it, and
 * runs the line of `answers` for the command; of others it says that it does not know them.
 * @param dir `<plugin dir>/vendor~driver`
 */
export async function installFlexDriver(dir: string, name: string, answers: Readonly<Record<string, string>>): Promise<void> {
  const cases = Object.entries(answers).map(([command, script]) => `${command}) ${script} ;;`);
  const text = [
    "#!/bin/sh",
    `printf '%s\\n' "$@" >> "$(dirname "$0")/asked"`,
    'case "$1" in',
    ...cases,
    `*) echo '{"status":"Not supported"}' ; exit 1 ;;`,
    "esac",
    "",
  ].join("\n");
  await mkdir(dir, { recursive: true });
  // A program that runs cannot be written to.
  const fresh = join(dir, `.${name}.new`);
  await writeFile(fresh, text);
  await chmod(fresh, 0o755);
  await rename(fresh, join(dir, name));
}
