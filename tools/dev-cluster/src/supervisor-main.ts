import { mkdirSync, rmSync, writeSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { newSupervisor, type Supervisor } from "./supervisor.ts";
import { type Request, type SupervisorPlace, socketFile } from "./supervisor-state.ts";

/**
 * `supervisor-main.ts <state folder> <run folder> <cluster id> <version>`: starts and restarts the processes of one cluster.
 * Serves the requests of `supervisor-client.ts` on `supervisor.sock` in the run folder. Its exit does not stop the processes.
 */
const [state = "", run = "", id = "", version = ""] = process.argv.slice(2);
const place: SupervisorPlace = { state, run, id };

function log(line: string): void {
  try {
    writeSync(1, `${new Date().toISOString()} ${line}\n`);
  } catch {
    // the disk is full; the supervisor must keep running
  }
}

const largestRequestBytes = 1 << 20;

async function answer(supervisor: Supervisor, request: Request): Promise<object> {
  switch (request.verb) {
    case "status":
      return supervisor.state();
    case "start":
      await supervisor.start(request.spec);
      return supervisor.state();
    case "stop":
      await supervisor.stop(request.name, request.graceMs);
      return supervisor.state();
    case "exit":
      return {};
    default:
      throw new Error(`unknown verb ${JSON.stringify((request as { verb?: unknown }).verb)}`); // cast: not one of the verbs of its type
  }
}

function serve(supervisor: Supervisor, connection: Socket): void {
  let text = "";
  connection.setEncoding("utf8");
  connection.on("error", () => {}); // the client disconnected
  const reply = async (line: string): Promise<void> => {
    const request = JSON.parse(line) as Request; // cast: supervisor-client.ts sends it
    const answered = await answer(supervisor, request);
    connection.end(`${JSON.stringify(answered)}\n`, () => {
      if (request.verb === "exit") exit("was requested to");
    });
  };
  connection.on("data", (chunk: string) => {
    text += chunk;
    if (text.length > largestRequestBytes) return void connection.destroy();
    if (!text.endsWith("\n")) return;
    const line = text;
    text = "";
    reply(line).catch((err: Error) => connection.end(`${JSON.stringify({ error: err.message })}\n`));
  });
}

function exit(why: string): void {
  log(`the supervisor ends: ${why}; what it started runs on`);
  rmSync(socketFile(place), { force: true });
  process.exit(0);
}

process.on("SIGHUP", () => {}); // sent when the terminal closes
for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => exit(name));
mkdirSync(dirname(socketFile(place)), { recursive: true, mode: 0o711 });
rmSync(socketFile(place), { force: true }); // left by a killed supervisor; `up` holds the cluster's lock
log(`the supervisor starts, pid ${process.pid}`);
const supervisor = newSupervisor(place, version, log);
const usersUmask = process.umask(0o177); // the socket is accessible to its owner only
createServer((connection) => serve(supervisor, connection))
  .listen(socketFile(place))
  .once("listening", () => process.umask(usersUmask));
