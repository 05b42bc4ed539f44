import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "../framework/kubectl.ts";
import { admin, type MachineCluster } from "./cluster.ts";

/** Commands of a guide. */
export interface Block {
  /** Machines on which they run, one after the other. */
  readonly on: readonly string[];
  readonly commands: string;
}

/** Blocks by section: those of `sh` whose first line is `# on cp1, n1 and n2`; `scp` between machines is part of them. */
export function readGuide(name: string): ReadonlyMap<string, readonly Block[]> {
  const text = readFileSync(join(settings.root, "docs", "guide", name), "utf8");
  const sections = text.split(/^## /m).slice(1);
  return new Map(
    sections.map((section) => [
      section.slice(0, section.indexOf("\n")),
      [...section.matchAll(/^```sh\n# on (.*)\n([\s\S]*?)^```$/gm)].map(([, on = "", commands = ""]) => ({
        on: on.match(/\b(?:cp|n|lb)\d\b/g) ?? [],
        commands,
      })),
    ]),
  );
}

const copying = /^scp (\w+):(\S+) (\S+)$/;

/** Runs a block as a user's shells would. @returns what it printed */
export async function runBlock(cluster: MachineCluster, { on, commands }: Block): Promise<string> {
  let printed = "";
  for (const name of on) {
    let script = "";
    const run = async (): Promise<void> => {
      const text = script;
      script = "";
      if (text.trim() !== "") printed += await cluster.machine(name).shell(`cd /root; export KUBECONFIG=${admin}\n${text}`);
    };
    for (const line of commands.split("\n")) {
      const [, from = "", path = "", to = ""] = copying.exec(line) ?? [];
      if (from === "") {
        script += `${line}\n`;
        continue;
      }
      await run();
      cluster.copy(path, from, name, to);
    }
    await run();
  }
  return printed;
}
