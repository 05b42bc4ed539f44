import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Connection, openConnection } from "./http.ts";
import { closedLoop } from "./load.ts";
import { benchPod } from "./objects.ts";
import { cpuSeconds } from "./process-usage.ts";
import { type RunningProgram, startProgram } from "./program.ts";
import { ourProgram } from "./target.ts";

/** Each server has as many connections and gets under way beside another one as alone: a turn of its loop answers as many. */
const connections = 100;
const atOnce = 32;
const secondsEach = 4;
/** Of each server, before it is measured: one that V8 still compiles costs more. */
const warmOperations = 40_000;
const warmSecondsAtMost = 60;
/** What the kernel's choice may give one of two: chance alone leaves 65 of 100 once in a thousand runs. */
const mostOfOne = 0.65;
const mostCpu = 1.1;

/**
 * `main.ts ports`: two servers on one port (--permit-port-sharing) against one, with the same load for each server: the CPU
 * of a GET, and how the first hundred connections are shared out.
 */
export async function benchPortSharing(): Promise<void> {
  const etcd = await startOwnEtcd();
  const { program, remove } = await ourProgram();
  const flags = { "etcd-servers": etcd.endpoint, "secure-port": String(await freePort()), "permit-port-sharing": "true" };
  const servers: RunningProgram[] = [];
  try {
    servers.push(await startProgram(program, flags));
    const connect = (): Promise<Connection> => openConnection((servers[0] as RunningProgram).url, program.token, program.ca);
    await createPod(await connect());
    const one = await measure(servers, connect);
    servers.push(await startProgram(program, flags));
    await waitFor(() => bothAnswer(connect), { timeoutMs: 60_000, what: "the second server to take connections" });
    const two = await measure(servers, connect);
    const ratio = two.cpuPerThousand / one.cpuPerThousand;
    console.log(
      `two servers on one port, CPU s/1000 gets: ${two.cpuPerThousand.toFixed(4)}, of one ${one.cpuPerThousand.toFixed(4)}, ` +
        `ratio ${ratio.toFixed(2)}, limit at most ${mostCpu}: ${ratio <= mostCpu ? "ok" : "NOT OK"}`,
    );
    const share = Math.max(...two.shares);
    console.log(
      `two servers on one port, share of ${connections} connections: ${two.shares.map((value) => value.toFixed(2)).join(" and ")}, ` +
        `limit at most ${mostOfOne} at one: ${share <= mostOfOne ? "ok" : "NOT OK"}`,
    );
  } finally {
    for (const server of servers) await server.stop();
    await etcd.stop();
    remove();
  }
}

/** The first server says for both that it is ready; the second one answers 503 until it is. */
async function bothAnswer(connect: () => Promise<Connection>): Promise<boolean> {
  const starts = new Set<string>();
  for (let tries = 0; tries < 20; tries++) {
    const connection = await connect();
    try {
      await connection.request("/readyz");
      starts.add(await startTimeOf(connection));
    } catch (err) {
      if (!/: 50[03] /.test((err as Error).message)) throw err;
    } finally {
      connection.close();
    }
  }
  return starts.size === 2;
}

/** Gets through many connections in turn. */
async function measure(
  servers: readonly RunningProgram[],
  connect: () => Promise<Connection>,
): Promise<{ cpuPerThousand: number; shares: number[] }> {
  const opened = await Promise.all(Array.from({ length: connections * servers.length }, connect));
  const starts = await Promise.all(opened.slice(0, connections).map(startTimeOf));
  const get = (turn: number) =>
    (opened[turn % opened.length] as Connection).request("/api/v1/namespaces/default/pods/shared?resourceVersion=0");
  const concurrency = atOnce * servers.length;
  await closedLoop(get, { concurrency, seconds: warmSecondsAtMost, maxOperations: warmOperations * servers.length });
  const before = servers.map(({ pid }) => cpuSeconds(pid));
  const { operations } = await closedLoop(get, { concurrency, seconds: secondsEach });
  const cpu = servers.reduce((sum, { pid }, index) => sum + cpuSeconds(pid) - (before[index] as number), 0);
  for (const connection of opened) connection.close();
  const counts = new Map<string, number>();
  for (const start of starts) counts.set(start, (counts.get(start) ?? 0) + 1);
  return { cpuPerThousand: (cpu / operations) * 1000, shares: [...counts.values()].map((count) => count / connections) };
}

/** The server behind a connection is known by the time at which it was started. */
async function startTimeOf(connection: Connection): Promise<string> {
  const { body } = await connection.request("/metrics", { keepBody: true });
  return /^process_start_time_seconds (\S+)$/m.exec(body.toString())?.[1] ?? "";
}

async function createPod(connection: Connection): Promise<void> {
  const headers = { "content-type": "application/json" };
  const account = JSON.stringify({ metadata: { name: "default" } });
  await connection.request("/api/v1/namespaces/default/serviceaccounts", { method: "POST", body: account, headers });
  const pod = JSON.stringify(benchPod("shared", 0));
  await connection.request("/api/v1/namespaces/default/pods", { method: "POST", body: pod, headers });
  connection.close();
}
