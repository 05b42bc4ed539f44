import type { Connection } from "./http.ts";
import { type Limit, quantities } from "./limits.ts";
import { closedLoop, type Measured, type Samples } from "./load.ts";
import type { Row } from "./row.ts";
import type { Stage } from "./stage.ts";

const { cpu, allCpu, p99, firstByte } = quantities;
const protobuf = { accept: "application/vnd.kubernetes.protobuf" };
const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };
const fromCache = "?resourceVersion=0";
const pageSize = 500;

/** Gets and lists of pods of 3 kB: from the watch cache, most recent, and in all common encodings. */
export function readRows(podCount: number): readonly Row[] {
  const pods = podCount.toLocaleString("en-US");
  const lightGet = [atMost(cpu, 0.3), atMost(p99, 1)];
  const jsonList = [atMost(cpu, 0.12), { ...atMost(firstByte, 20), absolute: true }];
  return [
    getRow("get pod, cache, 16 at once", fromCache, 16, lightGet),
    getRow("get pod, cache, 64 at once", fromCache, 64, lightGet),
    {
      name: "get pod, cache, 16 at once, HTTP/1.1",
      limits: [atMost(cpu, 0.45), atMost(p99, 1)],
      run: (stage, seconds) => get(stage, stage.http1Connection, fromCache, 16, seconds),
    },
    getRow("get pod, most recent, 16 at once", "", 16, [atMost(allCpu, 0.4)]),
    {
      name: "get pod, cache, 16 at once, RBAC user",
      run: (stage, seconds) => stage.userConnection && get(stage, stage.userConnection, fromCache, 16, seconds),
    },
    listRow(`list ${pods} pods, JSON, cache`, fromCache, jsonList),
    listRow(`list ${pods} pods, JSON, most recent`, "", jsonList),
    listRow(`list ${pods} pods, protobuf, cache`, fromCache, [atMost(cpu, 0.2)], protobuf),
    listRow(`list ${pods} pods, protobuf, most recent`, "", [atMost(cpu, 0.2)], protobuf),
    listRow(`list 1 % of ${pods} pods by label, cache`, `${fromCache}&labelSelector=sample%3D7`, [atMost(cpu, 0.2)]),
    listRow(`list ${pods} pods as Table, cache`, fromCache, [atMost(cpu, 0.2)], table),
    {
      name: `list ${pods} pods in pages of ${pageSize}`,
      limits: [atMost(cpu, 0.25)],
      run: (stage, seconds) => closedLoop(() => allPages(stage), { concurrency: 1, seconds }),
    },
    {
      name: `get pod, cache, while two list ${pods} pods`,
      limits: [atMost(p99, 0.5)],
      run: getWhileListing,
    },
  ];
}

function atMost(quantity: Limit["quantity"], share: number): Limit {
  return { quantity, atMost: share };
}

function getRow(name: string, query: string, concurrency: number, limits: readonly Limit[]): Row {
  return { name, limits, run: (stage, seconds) => get(stage, stage.connection, query, concurrency, seconds) };
}

async function get(stage: Stage, connection: Connection, query: string, concurrency: number, seconds: number): Promise<Samples> {
  const operation = async (sequence: number): Promise<Measured> => {
    const { totalMs } = await connection.request(stage.podPath(sequence) + query);
    return { totalMs };
  };
  return closedLoop(operation, { concurrency, seconds });
}

function listRow(name: string, query: string, limits: readonly Limit[], headers: Record<string, string> = {}): Row {
  const list = (stage: Stage) => () => stage.connection.request(`${stage.namespacePath}/pods${query}`, { headers });
  return { name, limits, run: (stage, seconds) => closedLoop(list(stage), { concurrency: 1, seconds }) };
}

/** Measures only the gets; lists use their own connections, so that they compete in the server only. */
async function getWhileListing(stage: Stage, seconds: number): Promise<Samples> {
  const listers = await Promise.all([stage.target.connect(), stage.target.connect()]);
  let over = false;
  const listing = listers.map(async (connection) => {
    while (!over) await connection.request(`${stage.namespacePath}/pods${fromCache}`);
  });
  try {
    return await get(stage, stage.connection, fromCache, 1, seconds);
  } finally {
    over = true;
    await Promise.all(listing);
    for (const connection of listers) connection.close();
  }
}

async function allPages(stage: Stage): Promise<Measured> {
  let token = "";
  let totalMs = 0;
  let firstByteMs: number | undefined;
  do {
    const query = `?limit=${pageSize}${token === "" ? "" : `&continue=${encodeURIComponent(token)}`}`;
    const answer = await stage.connection.request(`${stage.namespacePath}/pods${query}`, { keepBody: true });
    totalMs += answer.totalMs;
    firstByteMs ??= answer.firstByteMs;
    token = continueOf(answer.body);
  } while (token !== "");
  return { totalMs, firstByteMs: firstByteMs };
}

/** Finds the continue token in the metadata, which precedes the items; parsing the whole body would load the client. */
function continueOf(body: Buffer): string {
  return /"continue":"([^"]*)"/.exec(body.toString("latin1", 0, 2000))?.[1] ?? "";
}
