import { setTimeout as sleep } from "node:timers/promises";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { openConnection } from "./http.ts";
import { type Limit, type Quantity, verdict } from "./limits.ts";
import { closedLoop } from "./load.ts";
import { benchPod } from "./objects.ts";
import { parseOptions, type SecondServer } from "./options.ts";
import { residentMb } from "./process-usage.ts";
import { type Program, programOf, type RunningProgram, startProgram } from "./program.ts";
import { ourProgram, secondServerCa } from "./target.ts";

/** Measurements of a started program; times in ms, memory in MB. */
interface Started {
  emptyMs: number;
  idleMb: number;
  filledMs: number;
  filledMb: number;
  listedMb: number;
}

const rounds = 3;
const lists = 100;
/** Time for a started process to become idle. */
const settleMs = 3000;

const rowsOf = (pods: string): readonly [keyof Started, Limit][] => [
  ["emptyMs", atMost(`start to /readyz, ms, empty`, 0.35)],
  ["filledMs", atMost(`start to /readyz, ms, ${pods} pods`, 0.35)],
  ["idleMb", atMost("RSS MB, idle and empty", 0.5)],
  ["filledMb", atMost(`RSS MB, idle with ${pods} pods`, 0.5)],
  ["listedMb", atMost(`RSS MB, after ${lists} lists of ${pods} pods`, 0.5)],
];

function atMost(title: string, share: number): Limit {
  const quantity: Quantity = { title, digits: 0, of: () => Number.NaN };
  return { quantity, atMost: share };
}

/**
 * `main.ts start [--against <url> --token <t> --pid <p>]`: start time and memory of each program. The second server is not
 * touched: a new process of its program is started with the same flags and its own etcd.
 */
export async function benchStart(argv: readonly string[]): Promise<void> {
  const { pods, against, fairness } = parseOptions(argv);
  const { program, remove } = await ourProgram({ fairness });
  try {
    const programs = [program, ...(against === undefined ? [] : [likeRunning(against)])];
    const results: Started[] = [];
    for (const one of programs) results.push(await measureStart(one, pods * 2));
    const [ours, theirs] = results;
    for (const [field, limit] of rowsOf((pods * 2).toLocaleString("en-US"))) {
      const own = ours?.[field] ?? Number.NaN;
      console.log(theirs === undefined ? `${limit.quantity.title}: ${own.toFixed(0)}` : verdict(limit, own, theirs[field]).text);
    }
  } finally {
    remove();
  }
}

function likeRunning(against: SecondServer): Program {
  return programOf(against.pid, against.token, secondServerCa(against));
}

async function measureStart(program: Program, pods: number): Promise<Started> {
  const result: Started = { emptyMs: Infinity, idleMb: Infinity, filledMs: Infinity, filledMb: Infinity, listedMb: Infinity };
  const port = String(await freePort());
  let etcd = await startOwnEtcd();
  const start = (): Promise<RunningProgram> => startProgram(program, { "etcd-servers": etcd.endpoint, "secure-port": port });
  try {
    for (let round = 0; round < rounds; round++) {
      if (round > 0) {
        await etcd.stop();
        etcd = await startOwnEtcd();
      }
      const running = await start();
      result.emptyMs = Math.min(result.emptyMs, running.readyMs);
      if (round === rounds - 1) {
        await sleep(settleMs);
        result.idleMb = residentMb(running.pid);
        await fill(program, running, pods);
      }
      await running.stop();
    }
    for (let round = 0; round < rounds; round++) {
      const running = await start();
      result.filledMs = Math.min(result.filledMs, running.readyMs);
      if (round === rounds - 1) {
        await sleep(settleMs);
        result.filledMb = residentMb(running.pid);
        await listAll(program, running);
        await sleep(settleMs);
        result.listedMb = residentMb(running.pid);
      }
      await running.stop();
    }
  } finally {
    await etcd.stop();
  }
  return result;
}

const json = { "content-type": "application/json" };

async function fill({ token, ca }: Program, { url }: RunningProgram, count: number): Promise<void> {
  const connection = await openConnection(url, token, ca);
  const post = (path: string, object: object) =>
    connection.request(path, { method: "POST", body: JSON.stringify(object), headers: json });
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } };
  await post("/api/v1/namespaces/default/serviceaccounts", account);
  const pod = (index: number) =>
    post("/api/v1/namespaces/default/pods", benchPod(`web-${String(index).padStart(6, "0")}`, index));
  await closedLoop(pod, { concurrency: 16, seconds: 600, maxOperations: count });
  connection.close();
}

async function listAll({ token, ca }: Program, { url }: RunningProgram): Promise<void> {
  const connection = await openConnection(url, token, ca);
  const list = () => connection.request("/api/v1/pods?resourceVersion=0");
  await closedLoop(list, { concurrency: 1, seconds: 600, maxOperations: lists });
  connection.close();
}
