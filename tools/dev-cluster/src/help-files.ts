import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newProgram } from "./program.ts";

/** Where `cox` reads what `--help` of a verb prints, so that a fresh clone installs nothing for it. */
export const helpFile = (root: string, verb: string): string => join(root, "tools", "dev-cluster", "help", `${verb}.txt`);

/** What `--help` of each verb prints, as its command says it. */
export async function helpTexts(root: string): Promise<Map<string, string>> {
  return new Map(
    (await newProgram(root)).commands.map((command) => {
      let text = "";
      command.configureOutput({ writeOut: (part) => (text += part), outputError: () => {} }).outputHelp();
      return [command.name(), text];
    }),
  );
}

/** `help-files.ts`: writes the files anew. */
if (import.meta.main) {
  const root = join(import.meta.dirname, "..", "..", "..");
  for (const [verb, text] of await helpTexts(root)) writeFileSync(helpFile(root, verb), text);
}
