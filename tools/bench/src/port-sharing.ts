import { availableParallelism } from "node:os";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Answer, type Connection, openConnection } from "./http.ts";
import { closedLoop, openLoop } from "./load.ts";
import { benchPod } from "./objects.ts";
import { cpuSeconds } from "./process-usage.ts";
import { type RunningProgram, startProgram } from "./program.ts";
import { ourProgram } from "./target.ts";

/** Connections per server. */
const connections = 100;
/** Warm-up operations per server, so that V8 has optimized the code. */
const warmOperations = 40_000;
const warmSecondsAtMost = 60;
const warmAtOnce = 32;
/**
 * Rate per server. The cost of a GET depends on how many of them one event-loop turn handles and on contention for the CPU. This
 * rate corresponds to a cluster of some hundred nodes, and leaves two processors mostly idle even with two servers.
 */
const getsPerSecond = 500;
/** Measurements alternate, so that other load on the machine affects all alike. */
const rounds = 24;
const secondsEach = 1;
/** With this many processors, client and both servers do not compete; below it, concurrent results are not checked. */
const processorsForAll = 4;
/** Maximum share of connections at one of two servers: random choice exceeds 65 of 100 once in a thousand runs. */
const mostOfOne = 0.65;
const mostCpu = 1.1;

/** Servers on one port, and connections to them. */
interface Group {
  readonly servers: readonly RunningProgram[];
  readonly opened: readonly Connection[];
}

/**
 * `main.ts ports`: compares two servers on one port (--permit-port-sharing) with one on another port at the same rate per
 * server: CPU time of a GET, and the distribution of the first hundred connections. The pair is measured sequentially and
 * concurrently, at that rate and at full load; concurrent results are checked against the limit only when there are enough
 * processors.
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
    // newGroup takes some seconds, so that the two servers on one port differ in their start time (seconds).
    const one = await newGroup([alone], connectTo(alone));
    const pair = [first, await start(port)] as const;
    const connectToPair = connectTo(pair[0]);
    await waitFor(() => bothAnswer(connectToPair), { timeoutMs: 60_000, what: "the second server to take connections" });
    const two = await newGroup(pair, connectToPair);
    const halves = await byServer(two);
    const shares = halves.map(({ opened }) => opened.filter((it) => two.opened.indexOf(it) < connections).length / connections);
    // Baseline for concurrent load: two servers on two ports, which shows contention independent of port sharing.
    const onTwoPorts = joined(one, halves[0]!);
    const processors = availableParallelism();
    const atOnce = `at once on ${processors} processors`;
    const hasRoom = processors >= processorsForAll;
    const paced = (await compare([[one], halves, [two], [onTwoPorts]], getAtPace)) as [number, number, number, number]; // cast: one number for each of the four
    const pace = `${getsPerSecond}/s each`;
    report(`one port, ${pace}, one after the other`, paced[1], paced[0], true);
    report(`one port, ${pace}, ${atOnce}`, paced[2], paced[0], hasRoom);
    report(`two ports, ${pace}, ${atOnce}`, paced[3], paced[0], false);
    const hurried = (await compare([[one], [two], [onTwoPorts]], getWithoutPause)) as [number, number, number]; // cast: one number for each of the three
    report(`one port, without pause, ${atOnce}`, hurried[1], hurried[0], hasRoom);
    report(`two ports, without pause, ${atOnce}`, hurried[2], hurried[0], false);
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

/** Either server may answer; the pair is ready when 20 connections reach both and both are ready (503 until then). */
async function bothAnswer(connect: () => Promise<Connection>): Promise<boolean> {
  const starts = new Set<string>();
  for (let tries = 0; tries < 20; tries++) {
    const connection = await connect();
    try {
      await connection.request("/readyz");
      starts.add(await startTimeOf(connection));
    } catch (err) {
      if (!/: 50[03] /.test(messageOf(err))) throw err;
    } finally {
      connection.close();
    }
  }
  return starts.size === 2;
}

/** Opens the connections and warms up the servers. */
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

/**
 * @param sides alternatives to compare; the groups of a side are measured one after the other and added up
 * @param load @returns the number of GETs
 * @returns CPU seconds per 1,000 GETs, for each side
 */
async function compare(sides: readonly (readonly Group[])[], load: (group: Group) => Promise<number>): Promise<number[]> {
  const sums = sides.map((groups) => ({ groups, cpu: 0, gets: 0 }));
  for (let round = 0; round < rounds; round++) {
    for (const sum of sums) {
      for (const group of sum.groups) {
        const before = cpuOf(group);
        sum.gets += await load(group);
        sum.cpu += cpuOf(group) - before;
      }
    }
  }
  return sums.map(({ cpu, gets }) => (cpu / gets) * 1000);
}

function report(name: string, two: number, one: number, isHeld: boolean): void {
  const ratio = two / one;
  const verdict = isHeld ? `, limit at most ${mostCpu}: ${ratio <= mostCpu ? "ok" : "NOT OK"}` : "";
  console.log(
    `CPU s/1000 gets, two servers on ${name}: ${two.toFixed(4)}, of one ${one.toFixed(4)}, ratio ${ratio.toFixed(2)}${verdict}`,
  );
}

const cpuOf = ({ servers }: Group): number => servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);

/** Distributes requests over the connections in round-robin order. */
function getOf({ opened }: Group, turn: number): Promise<Answer> {
  const connection = opened[turn % opened.length]!;
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

/** Interleaves connections, to load both servers evenly. */
function joined(a: Group, b: Group): Group {
  return { servers: [...a.servers, ...b.servers], opened: a.opened.flatMap((own, i) => [own, b.opened[i] ?? own]) };
}

/** Splits connections by server, in start order. */
async function byServer({ servers, opened }: Group): Promise<Group[]> {
  const starts = await Promise.all(opened.map(startTimeOf));
  const inOrder = [...new Set(starts)].toSorted((a, b) => Number(a) - Number(b));
  return inOrder.map((start, i) => ({
    servers: [servers[i]!],
    opened: opened.filter((_, at) => starts[at] === start),
  }));
}

/** process_start_time_seconds identifies the server behind a connection. */
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
