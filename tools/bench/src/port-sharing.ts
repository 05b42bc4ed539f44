import { availableParallelism } from "node:os";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Answer, type Connection, openConnection } from "./http.ts";
import { closedLoop, openLoop } from "./load.ts";
import { benchPod } from "./objects.ts";
import { cpuSeconds } from "./process-usage.ts";
import { type RunningProgram, startProgram } from "./program.ts";
import { ourProgram } from "./target.ts";

/** For each server, beside another one as alone. */
const connections = 100;
/** Of each server, before it is measured: one that V8 still compiles costs more. */
const warmOperations = 40_000;
const warmSecondsAtMost = 60;
const warmAtOnce = 32;
/**
 * Of each server. What a get costs depends on how many of them a turn of the loop finds, and on who else wants the processors: this
 * is what an API server of some hundred nodes is asked for, and leaves two processors idle most of the time, two servers and all.
 */
const getsPerSecond = 500;
/** In turn, so that whatever else this machine does meets them alike. */
const rounds = 24;
const secondsEach = 1;
/** What the kernel's choice may give one of two: chance alone leaves 65 of 100 once in a thousand runs. */
const mostOfOne = 0.65;
const mostCpu = 1.1;

/** Servers on one port, and connections to them. */
interface Group {
  readonly servers: readonly RunningProgram[];
  readonly opened: readonly Connection[];
}

/**
 * `main.ts ports`: two servers on one port (--permit-port-sharing) against one on another, each of them at the same pace: the CPU of
 * a GET, and how the first hundred connections are shared out. Then both as fast as they are asked without pause.
 */
export async function benchPortSharing(): Promise<void> {
  const etcd = await startOwnEtcd();
  const { program, remove } = await ourProgram();
  const servers: RunningProgram[] = [];
  const start = async (port: number): Promise<RunningProgram> => {
    const flags = { "etcd-servers": etcd.endpoint, "secure-port": String(port), "permit-port-sharing": "true" };
    const server = await startProgram(program, flags);
    servers.push(server);
    return server;
  };
  const connectTo = (server: RunningProgram) => () => openConnection(server.url, program.token, program.ca);
  try {
    const alone = await start(await freePort());
    await createPod(await connectTo(alone)());
    const port = await freePort();
    const first = await start(port);
    // Takes some seconds: the two on one port are told apart by the second in which they were started.
    const one = await newGroup([alone], connectTo(alone));
    const pair = [first, await start(port)] as const;
    const connectToPair = connectTo(pair[0]);
    await waitFor(() => bothAnswer(connectToPair), { timeoutMs: 60_000, what: "the second server to take connections" });
    const two = await newGroup(pair, connectToPair);
    const shares = await sharesOf(two);
    const atPace = await compare(one, two, getAtPace);
    console.log(
      `two servers on one port, CPU s/1000 gets at ${getsPerSecond}/s each: ${told(atPace)}, ` +
        `limit at most ${mostCpu}: ${atPace.two / atPace.one <= mostCpu ? "ok" : "NOT OK"}`,
    );
    const processes = `client and servers on ${availableParallelism()} processors`;
    console.log(`the same, without pause, ${processes}: ${told(await compare(one, two, getWithoutPause))}`);
    const share = Math.max(...shares);
    console.log(
      `two servers on one port, share of ${connections} connections: ${shares.map((value) => value.toFixed(2)).join(" and ")}, ` +
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

/** Its servers have answered enough to be measured. */
async function newGroup(servers: readonly RunningProgram[], connect: () => Promise<Connection>): Promise<Group> {
  const opened = await Promise.all(Array.from({ length: connections * servers.length }, connect));
  const group = { servers, opened };
  await closedLoop((turn) => getOf(group, turn), {
    seconds: warmSecondsAtMost,
    maxOperations: warmOperations * servers.length,
    concurrency: warmAtOnce * servers.length,
  });
  return group;
}

interface CpuOfGets {
  readonly one: number;
  readonly two: number;
}

/** CPU seconds for 1,000 gets. @param load @returns how many gets it did */
async function compare(one: Group, two: Group, load: (group: Group) => Promise<number>): Promise<CpuOfGets> {
  const sums = [one, two].map((group) => ({ group, cpu: 0, gets: 0 }));
  for (let round = 0; round < rounds; round++) {
    for (const sum of sums) {
      const before = cpuOf(sum.group);
      sum.gets += await load(sum.group);
      sum.cpu += cpuOf(sum.group) - before;
    }
  }
  const [cpuOfOne, cpuOfTwo] = sums.map(({ cpu, gets }) => (cpu / gets) * 1000) as [number, number];
  return { one: cpuOfOne, two: cpuOfTwo };
}

const told = ({ one, two }: CpuOfGets): string => `${two.toFixed(4)}, of one ${one.toFixed(4)}, ratio ${(two / one).toFixed(2)}`;

const cpuOf = ({ servers }: Group): number => servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);

/** Through its connections in turn. */
function getOf({ opened }: Group, turn: number): Promise<Answer> {
  const connection = opened[turn % opened.length] as Connection;
  return connection.request("/api/v1/namespaces/default/pods/shared?resourceVersion=0");
}

function getAtPace(group: Group): Promise<number> {
  return openLoop((turn) => getOf(group, turn), { perSecond: getsPerSecond * group.servers.length, seconds: secondsEach });
}

async function getWithoutPause(group: Group): Promise<number> {
  const concurrency = warmAtOnce * group.servers.length;
  const { operations } = await closedLoop((turn) => getOf(group, turn), { seconds: secondsEach, concurrency });
  return operations;
}

/** How the first connections are shared out among the servers. */
async function sharesOf({ opened }: Group): Promise<number[]> {
  const counts = new Map<string, number>();
  for (const start of await Promise.all(opened.slice(0, connections).map(startTimeOf))) {
    counts.set(start, (counts.get(start) ?? 0) + 1);
  }
  return [...counts.values()].map((count) => count / connections);
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
