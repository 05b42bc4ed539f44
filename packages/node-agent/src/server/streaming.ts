import { connect } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { describePod, type NodePod } from "../pod/pod.ts";
import { readPodRecord } from "../runtime/pod-record.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";

interface StreamingContext {
  runtime: ContainerRuntime;
  log: Logger;
  podByName: (namespace: string, name: string) => NodePod | undefined;
}

const dialTimeoutMs = 10_000;

interface Target {
  pod: NodePod;
  containerId: string;
  sandboxId: string;
}

/** Resolves `/{namespace}/{pod}[/{uid}][/{container}]`; responds with an error and returns undefined when it does not exist. */
async function findTarget(
  exchange: Exchange,
  context: StreamingContext,
  names: readonly string[],
  withContainer: boolean,
): Promise<Target | undefined> {
  const [namespace = "", podName = "", ...rest] = names;
  const uid = rest.length > (withContainer ? 1 : 0) ? rest[0] : undefined;
  const container = withContainer ? rest.at(-1) : undefined;
  const pod = context.podByName(namespace, podName);
  const refuse = (status: number, message: string): undefined => {
    exchange.respond(status, { "content-type": "text/plain; charset=utf-8" }, message);
    return undefined;
  };
  if (pod === undefined || (uid !== undefined && uid !== "" && uid !== pod.metadata.uid))
    return refuse(404, "pod does not exist");
  const record = await readPodRecord(context.runtime, pod.metadata);
  const sandbox = record.sandboxes.find((candidate) => candidate.ready);
  if (!withContainer) {
    if (sandbox === undefined) return refuse(500, `failed to find sandboxID for pod ${describePod(pod)}`);
    return { pod, containerId: "", sandboxId: sandbox.id };
  }
  // Streams to an exited container are impossible, even though the runtime still lists it.
  const found = record.containers.find(({ name, state }) => name === container && state === "running");
  if (found === undefined) return refuse(500, `container not found (${JSON.stringify(container ?? "")})`);
  return { pod, containerId: found.id, sandboxId: sandbox?.id ?? "" };
}

function streamFlags(query: URLSearchParams): { stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean } {
  const is = (name: string): boolean => query.get(name) === "1" || query.get(name) === "true";
  const tty = is("tty");
  return { stdin: is("input"), stdout: is("output"), stderr: is("error") && !tty, tty };
}

const noStreams = "you must specify at least 1 of stdin, stdout, stderr";

/** `/exec/…?command=…`: proxied to the runtime's streaming server. */
export function serveExec(...call: StreamCall): Promise<void> {
  const [, { runtime }, , query] = call;
  return serveStreams(call, (target) => runtime.exec({ ...target, cmd: query.getAll("command") }));
}

/** `/attach/…`: proxied to the runtime's streaming server. */
export function serveAttach(...call: StreamCall): Promise<void> {
  const [, { runtime }] = call;
  return serveStreams(call, (target) => runtime.attach(target));
}

/** A request and the path segments that identify the container. */
type StreamCall = [exchange: Exchange, context: StreamingContext, names: readonly string[], query: URLSearchParams];
type StreamTarget = { containerId: string } & ReturnType<typeof streamFlags>;

async function serveStreams(
  [exchange, context, names, query]: StreamCall,
  locate: (target: StreamTarget) => Promise<string>,
): Promise<void> {
  const target = await findTarget(exchange, context, names, true);
  if (target === undefined) return;
  const flags = streamFlags(query);
  if (!flags.stdin && !flags.stdout && !flags.stderr) return exchange.respond(400, { "content-type": "text/plain" }, noStreams);
  await forward(exchange, () => locate({ containerId: target.containerId, ...flags }));
}

/** `/portForward/…`: proxied to the runtime's streaming server. */
export async function servePortForward(...[exchange, context, names, query]: StreamCall): Promise<void> {
  const target = await findTarget(exchange, context, names, false);
  if (target === undefined) return;
  const port = query
    .getAll("port")
    .flatMap((text) => text.split(","))
    .map(Number)
    .filter((number) => number > 0 && number < 65_536);
  await forward(exchange, () => context.runtime.portForward({ podSandboxId: target.sandboxId, port }));
}

/** `/run/…?cmd=…`: executes a command and responds with its output. */
export async function serveRun(...[exchange, context, names, query]: StreamCall): Promise<void> {
  const target = await findTarget(exchange, context, names, true);
  if (target === undefined) return;
  const command = (query.get("cmd") ?? "").split(" ").filter((word) => word !== "");
  const { stdout, stderr, exitCode } = await context.runtime.execSync(target.containerId, command, 0);
  const output = Buffer.concat([stdout, stderr]);
  if (exitCode === 0) return exchange.respond(200, { "content-type": "text/plain" }, output);
  exchange.respond(
    500,
    { "content-type": "text/plain" },
    Buffer.concat([output, Buffer.from(`command terminated with exit code ${exitCode}`)]),
  );
}

async function forward(exchange: Exchange, locate: () => Promise<string>): Promise<void> {
  const { upgrade } = exchange;
  if (upgrade === undefined) {
    exchange.respond(400, { "content-type": "text/plain; charset=utf-8" }, "Upgrade request required");
    return;
  }
  const url = new URL(await locate());
  const backend = await dial(url.hostname.replace(/^\[|\]$/g, ""), Number(url.port || 80));
  // A client that went away meanwhile emits no further "close".
  if (upgrade.socket.destroyed) return void backend.destroy();
  backend.write(requestHead(exchange, url));
  if (upgrade.head.length > 0) backend.write(upgrade.head);
  splice(upgrade.socket, backend);
}

/** The client's request head for another path. Raw headers keep their order, spelling and repetitions. */
function requestHead(exchange: Exchange, url: URL): string {
  const raw = exchange.rawHeaders;
  let head = `${exchange.method} ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n`;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    // The client's credentials are not passed to the runtime.
    if (name === "host" || name === "authorization" || name === "cookie") continue;
    head += `${raw[i]}: ${raw[i + 1]}\r\n`;
  }
  return `${head}\r\n`;
}

function dial(host: string, port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    // A socket's timeout ends with the socket; a separate timer would keep running after a refused connection.
    socket.setTimeout(dialTimeoutMs, () => socket.destroy(new Error(`dial tcp ${host}:${port}: i/o timeout`)));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", reject);
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}

/** Proxies bytes in both directions. A half-close is passed on; an error closes both sides. */
function splice(client: Duplex, backend: Duplex): void {
  const end = (): void => {
    client.destroy();
    backend.destroy();
  };
  client.on("error", end);
  backend.on("error", end);
  client.on("close", end);
  backend.on("close", () => client.end(() => client.destroy()));
  client.pipe(backend);
  backend.pipe(client);
}
