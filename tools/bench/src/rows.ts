import type { Connection } from "./http.ts";
import { closedLoop, type Measured, type Samples } from "./load.ts";
import type { Stage } from "./stage.ts";
import { watchFanOut } from "./watch-fan-out.ts";
import { writeRows } from "./write-rows.ts";

/** One line of the table: a kind of load, the same for every server. */
export interface Row {
  readonly name: string;
  /** Makes what the row needs; it does not count. */
  prepare?(stage: Stage, seconds: number): Promise<void>;
  /** undefined: this server cannot be measured so */
  run(stage: Stage, seconds: number): Promise<Samples> | undefined;
}

const protobuf = { accept: "application/vnd.kubernetes.protobuf" };

export function rowsFor(podCount: number): readonly Row[] {
  const pods = podCount.toLocaleString("en-US");
  return [
    getRow("get pod, cache, 16 at once", "?resourceVersion=0", 16),
    getRow("get pod, cache, 64 at once", "?resourceVersion=0", 64),
    getRow("get pod, most recent, 16 at once", "", 16),
    {
      name: "get pod, cache, 16 at once, RBAC user",
      run: (stage, seconds) => stage.userConnection && get(stage, stage.userConnection, "?resourceVersion=0", 16, seconds),
    },
    listRow(`list ${pods} pods, JSON, cache`, "?resourceVersion=0"),
    listRow(`list ${pods} pods, JSON, most recent`, ""),
    listRow(`list ${pods} pods, protobuf, cache`, "?resourceVersion=0", protobuf),
    listRow(`list ${pods} pods, protobuf, most recent`, "", protobuf),
    listRow(`list 1 % of ${pods} pods by label, cache`, "?resourceVersion=0&labelSelector=sample%3D7"),
    {
      name: `list ${pods} pods in pages of 500`,
      run: (stage, seconds) => closedLoop(() => allPages(stage), { concurrency: 1, seconds }),
    },
    {
      name: "watch event, 500 watchers, 5 connections",
      run: (stage, seconds) => watchFanOut(stage, { watchers: 500, connections: 5, seconds }),
    },
    {
      name: "watch event, 500 watchers, 50 connections",
      run: (stage, seconds) => watchFanOut(stage, { watchers: 500, connections: 50, seconds }),
    },
    ...writeRows,
  ];
}

function getRow(name: string, query: string, concurrency: number): Row {
  return { name, run: (stage, seconds) => get(stage, stage.connection, query, concurrency, seconds) };
}

async function get(stage: Stage, connection: Connection, query: string, concurrency: number, seconds: number): Promise<Samples> {
  const operation = async (sequence: number): Promise<Measured> => {
    const { totalMs } = await connection.request(stage.podPath(sequence) + query);
    return { totalMs };
  };
  return closedLoop(operation, { concurrency, seconds });
}

function listRow(name: string, query: string, headers: Record<string, string> = {}): Row {
  return {
    name,
    run: (stage, seconds) =>
      closedLoop(() => stage.connection.request(`${stage.namespacePath}/pods${query}`, { headers }), { concurrency: 1, seconds }),
  };
}

async function allPages(stage: Stage): Promise<Measured> {
  let token = "";
  let totalMs = 0;
  let firstByteMs: number | undefined;
  do {
    const query = `?limit=500${token === "" ? "" : `&continue=${encodeURIComponent(token)}`}`;
    const answer = await stage.connection.request(`${stage.namespacePath}/pods${query}`, { keepBody: true });
    totalMs += answer.totalMs;
    firstByteMs ??= answer.firstByteMs;
    token = continueOf(answer.body);
  } while (token !== "");
  return { totalMs, firstByteMs: firstByteMs as number };
}

/** The list's metadata stands before its items; parsing the whole would load the machine with our own work. */
function continueOf(body: Buffer): string {
  return /"continue":"([^"]*)"/.exec(body.toString("latin1", 0, 2000))?.[1] ?? "";
}
