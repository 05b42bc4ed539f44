import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import type { RowReport } from "../daemons/report.ts";
import { holds, markdownOf, type StepResult } from "./markdown.ts";
import { argsOf, type Step, steps } from "./steps.ts";

const help = `usage: ./cox bench all --peer-bin <folder> [--out <folder>] [--only <name>]... [--quick] [--dry-run]

Measures all daemons beside the programs in a folder, one benchmark after the other in separate processes, in 45 minutes at
most, and writes table.md and a picture of each benchmark. A benchmark that fails or takes too long leaves the rows it
had, and the next one begins. Needs root and what ./cox up needs. Exit code 1: a limit is exceeded or rows are missing.

  --peer-bin <folder>  kube-controller-manager, kube-scheduler, kubelet, kube-apiserver and kube-proxy of another implementation
  --out <folder>       default .cox/bench
  --only <name>        only these benchmarks: ${steps.map(({ name }) => name).join(", ")}
  --quick              small sizes: shows in a few minutes that all of them work
  --dry-run            prints the commands
`;

/** `main.ts all [flags]`. @returns true when every row was measured and is within its limits */
export async function benchAll(argv: readonly string[]): Promise<boolean> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      "peer-bin": { type: "string" },
      out: { type: "string", default: join(".cox", "bench") },
      only: { type: "string", multiple: true, default: [] },
      quick: { type: "boolean", default: false },
      "dry-run": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return true;
  }
  const peer = values["peer-bin"];
  if (peer === undefined) throw new Error("usage: ./cox bench all --peer-bin <folder>; see --help");
  const unknown = values.only.find((name) => steps.every((step) => step.name !== name));
  if (unknown !== undefined)
    throw new Error(`usage: there is no benchmark ${JSON.stringify(unknown)}; see ./cox bench all --help`);
  const chosen = steps.filter(({ name }) => values.only.length === 0 || values.only.includes(name));
  const commands = chosen.map((step) => ({
    step,
    args: argsOf(step, { peer: resolve(peer), out: values.out, isQuick: values.quick }),
  }));
  if (values["dry-run"]) {
    for (const { args } of commands) console.log(["./cox bench", ...args].join(" "));
    return true;
  }
  makeFolderSync(values.out);
  const results: StepResult[] = [];
  for (const { step, args } of commands) {
    console.log(`${step.name}: at most ${step.mostMinutes} min …`);
    results.push(await runStep(step, args));
    // Written after each step, so that an interrupted run keeps the rows measured so far.
    writeFileSync(join(values.out, "table.md"), markdownOf(results));
  }
  console.log(markdownOf(results));
  return holds(results);
}

const main = join(import.meta.dirname, "..", "main.ts");

async function runStep({ title, mostMinutes }: Step, args: readonly string[]): Promise<StepResult> {
  // A separate process group, so that the servers that the step has started can be stopped with it.
  const child = spawn(process.execPath, [...process.execArgv, main, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const end = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM");
  };
  const interrupted = (): void => {
    end();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupted);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    end();
  }, mostMinutes * 60_000);
  const [code] = (await once(child, "close")) as [number | null]; // cast: the arguments of the event "close"
  clearTimeout(limit);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, interrupted);
  const failure = isLate ? `not done after ${mostMinutes} minutes` : code === 0 ? undefined : `it ended with ${code}`;
  return { title, ...rowsOf(output), ...(failure !== undefined && { failure }) };
}

/** @param output JSON; incomplete when the benchmark failed early */
function rowsOf(output: string): { machine?: string; reports: readonly RowReport[] } {
  try {
    return JSON.parse(output) as { machine: string; reports: RowReport[] }; // cast: each benchmark prints it with --output=json
  } catch {
    return { reports: [] };
  }
}
