import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Target } from "./attack.ts";
import type { Order, Report } from "./attacker.ts";

export interface AttackerProcess {
  setup(name: string): Promise<void>;
  run(ms: number): Promise<Record<string, number>>;
  cleanup(): Promise<void>;
}

/** Starts the attacker's process, which exits with the test. */
export async function startAttacker(t: { after(fn: () => Promise<void>): void }, target: Target): Promise<AttackerProcess> {
  const child = fork(join(import.meta.dirname, "attacker.ts"), [], { execArgv: ["-C", "cox-source"] });
  t.after(() => ended(child));
  let waiting: PromiseWithResolvers<Report> | undefined;
  child.on("message", (report: Report) => waiting?.resolve(report));
  child.on("exit", (code, signal) => waiting?.reject(new Error(`the attacker has ended (${code ?? signal})`)));
  const order = async (what: Order): Promise<Report> => {
    waiting = Promise.withResolvers<Report>();
    child.send(what);
    const report = await waiting.promise;
    if (report.error !== undefined) throw new Error(`the attacker's ${what.verb}: ${report.error}`);
    return report;
  };
  await order({ verb: "aim", target });
  return {
    async setup(name) {
      await order({ verb: "setup", name });
    },
    async run(ms) {
      return (await order({ verb: "run", ms })).counts ?? {};
    },
    async cleanup() {
      await order({ verb: "cleanup" });
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
