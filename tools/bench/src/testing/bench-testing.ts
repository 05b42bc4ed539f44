import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { limits, measure, mostHeapGrowthMb } from "@coxswain/publish/limits/measurements";
import { publishedPackages } from "@coxswain/publish/packages";
import { writePackage } from "@coxswain/publish/write-package";
import { machineLine } from "../daemons/options.ts";
import { besideEnvtest, type SuiteReport } from "./beside-envtest.ts";

const help = `usage: ./cox bench testing [flags]

Clusters in a test's process, by the package as it is published: the first of a process, a copy, a Deployment of 10, 20 clusters at once, cycles of
start and stop. Exits with 1 when a limit is exceeded, which a loaded machine does, too.

  --rounds <n>         rounds of each row, each in a separate process for the first cluster; default 5 (the median is shown)
  --cycles <n>         cycles of start and stop; default 100
  --peer-bin <folder>  kube-apiserver of another implementation, started as envtest does with the etcd on the PATH: start, memory, and a
                       suite of 50 tests beside ours
  --cpu-prof <folder>  writes a CPU profile of each row
  --json               prints the rows as JSON
`;

interface Row {
  readonly name: string;
  readonly figure: number;
  readonly unit: "ms" | "MB" | "handles";
  readonly limit?: number;
  readonly cpuMs?: number;
}

/** `main.ts testing [flags]` @returns true when all results are within their limits */
export async function benchTesting(argv: readonly string[]): Promise<boolean> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: "string", default: "5" },
      cycles: { type: "string", default: "100" },
      "peer-bin": { type: "string" },
      "cpu-prof": { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return true;
  }
  const rounds = wholeNumber("--rounds", values.rounds, 100);
  const cycles = wholeNumber("--cycles", values.cycles, 10_000);
  const machine = machineLine(loadavg()[0] ?? 0);
  const scratch = mkdtempSync(join(tmpdir(), "cox-bench-testing-"));
  try {
    const folder = await writtenPackage(scratch);
    const profile = values["cpu-prof"] === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values["cpu-prof"]}`];
    const rows = await measureRows(folder, rounds, cycles, profile);
    const peer = values["peer-bin"];
    const suites = peer === undefined ? [] : await besideEnvtest(folder, peer, rounds);
    if (values.json) console.log(JSON.stringify({ machine, rows, suites }, undefined, 2));
    else for (const line of [machine, ...rows.map(lineOf), ...suiteLines(suites)]) console.log(line);
    return rows.every(isKept);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** @returns the folder of the package */
async function writtenPackage(scratch: string): Promise<string> {
  const published = publishedPackages.find(({ folder }) => folder === "testing");
  if (published === undefined) throw new Error("the package testing is not published");
  const folder = join(scratch, "testing");
  await writePackage(join(import.meta.dirname, "../../../.."), published, folder);
  return folder;
}

async function measureRows(folder: string, rounds: number, cycles: number, flags: readonly string[]): Promise<Row[]> {
  const firsts = [];
  for (let round = 0; round < rounds; round++) firsts.push((await measure(folder, { first: 1 }, flags)).first);
  const first = firsts.toSorted((a, b) => a.wallMs - b.wallMs)[rounds >> 1] as (typeof firsts)[number];
  const { fork } = await measure(folder, { fork: rounds }, flags);
  const { deployment } = await measure(folder, { deployment: rounds }, flags);
  const { together } = await measure(folder, { together: limits.together }, flags);
  const { cycles: spent } = await measure(folder, { cycles }, flags);
  const timed = { unit: "ms" } as const;
  return [
    { name: "first cluster of a process", figure: first.wallMs, ...timed, limit: limits.firstMs, cpuMs: first.cpuMs },
    { name: "fork", figure: fork.wallMs, ...timed, limit: limits.forkMs, cpuMs: fork.cpuMs },
    {
      ...{ name: "Deployment of 10 until ready", figure: deployment.wallMs, ...timed },
      ...{ limit: limits.deploymentMs, cpuMs: deployment.cpuMs },
    },
    { name: `${limits.together} clusters at once`, figure: together.rssMb, unit: "MB", limit: limits.togetherMb },
    {
      ...{ name: `heap after ${cycles} cycles`, figure: spent.heapMbAfter, unit: "MB" },
      ...{ limit: spent.heapMbBefore + mostHeapGrowthMb, cpuMs: spent.cpuMsEach },
    },
    { name: "left open by them", figure: spent.handlesLeft, unit: "handles", limit: 0 },
  ];
}

const isKept = ({ figure, limit }: Row): boolean => limit === undefined || figure <= limit;

function lineOf(row: Row): string {
  const { name, figure, unit, limit, cpuMs } = row;
  const cpu = cpuMs === undefined ? "" : `, ${cpuMs.toFixed(0)} ms of CPU`;
  return `${name.padEnd(30)}${figure.toFixed(0).padStart(7)} ${unit}${cpu}, limit ${limit?.toFixed(0)} ${unit}: ${isKept(row) ? "ok" : "NOT OK"}`;
}

function suiteLines(suites: readonly SuiteReport[]): string[] {
  return suites.map(
    ({ name, startMs, startCpuMs, suiteMs, suiteCpuMs, residentMb }) =>
      `${name.padEnd(30)}start ${startMs.toFixed(0)} ms (CPU ${startCpuMs.toFixed(0)}), 50 tests ${suiteMs.toFixed(0)} ms (CPU ${suiteCpuMs.toFixed(0)}), ${residentMb.toFixed(0)} MB in all processes`,
  );
}

function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 1 && value <= most)) throw new Error(`usage: ${flag} must be a whole number from 1 to ${most}, not ${text}`);
  return value;
}
