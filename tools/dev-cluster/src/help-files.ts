import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newProgram } from "./program.ts";

/** File with the `--help` output of a command, which lets `cox` print it in a fresh clone without installing anything. */
export const helpFile = (root: string, verb: string): string => join(root, "tools", "dev-cluster", "help", `${verb}.txt`);

/** `--help` output by command name. */
export async function helpTexts(root: string): Promise<Map<string, string>> {
  return new Map(
    (await newProgram(root)).commands.map((command) => {
      let text = "";
      command.configureOutput({ writeOut: (part) => (text += part), outputError: () => {} }).outputHelp();
      return [command.name(), text];
    }),
  );
}

/** `help-files.ts`: rewrites the files. */
if (import.meta.main) {
  const root = join(import.meta.dirname, "..", "..", "..");
  for (const [verb, text] of await helpTexts(root)) writeFileSync(helpFile(root, verb), text);
}
