import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { describePod, type NodePod } from "../pod/pod.ts";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../runtime/runtime.ts";

interface StreamingContext {
  runtime: ContainerRuntime;
  log: Logger;
  podByName: (namespace: string, name: string) => NodePod | undefined;
}

const dialTimeoutMs = 10_000;

/** The pod of `/{namespace}/{pod}[/{uid}]…`; responds with 404 and returns undefined when it does not exist. */
function findPod(exchange: Exchange, context: StreamingContext, names: readonly string[], uid: string): NodePod | undefined {
  const [namespace = "", podName = ""] = names;
  const pod = context.podByName(namespace, podName);
  if (pod !== undefined && (uid === "" || uid === pod.metadata.uid)) return pod;
  return refuse(exchange, 404, "pod does not exist");
}

function refuse(exchange: Exchange, status: number, message: string): undefined {
  exchange.respond(status, { "content-type": "text/plain; charset=utf-8" }, message);
  return undefined;
}

/**
 * The ID of the running container of `/{namespace}/{pod}[/{uid}]/{container}`; responds with an error and returns undefined when there is
 * none: streams to an exited container are impossible, even though the runtime still lists it. Without a UID the pod's name counts, as
 * upstream: a pod that has just been recreated may not have the container yet, while that of the earlier pod still runs. One call to the
 * runtime, because a client waits for it. Source: pkg/kubelet/kubelet_pods.go findContainer
 */
async function findContainerId(
  exchange: Exchange,
  context: StreamingContext,
  names: readonly string[],
): Promise<string | undefined> {
  const uid = names.length > 3 ? (names[2] ?? "") : "";
  const pod = findPod(exchange, context, names, uid);
  if (pod === undefined) return undefined;
  const name = names.length > 2 ? (names.at(-1) ?? "") : "";
  const ofPod: Readonly<Record<string, string>> =
    uid === ""
      ? { [labelNames.podNamespace]: pod.metadata.namespace, [labelNames.podName]: pod.metadata.name }
      : { [labelNames.podUid]: uid };
  const labels = { ...ofPod, [labelNames.containerName]: name };
  const running = (await context.runtime.listContainers({ labels })).filter(({ state }) => state === containerState.running);
  return newestId(running) ?? refuse(exchange, 500, `container not found (${JSON.stringify(name)})`);
}

function newestId(listed: readonly { id: string; createdAt: number }[]): string | undefined {
  return listed.toSorted((a, b) => b.createdAt - a.createdAt)[0]?.id;
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
  const containerId = await findContainerId(exchange, context, names);
  if (containerId === undefined) return;
  const flags = streamFlags(query);
  if (!flags.stdin && !flags.stdout && !flags.stderr) return exchange.respond(400, { "content-type": "text/plain" }, noStreams);
  await forward(exchange, () => locate({ containerId, ...flags }));
}

/** `/portForward/…`: proxied to the runtime's streaming server. */
export async function servePortForward(...[exchange, context, names, query]: StreamCall): Promise<void> {
  const pod = findPod(exchange, context, names, names[2] ?? "");
  if (pod === undefined) return;
  const listed = await context.runtime.listPodSandboxes({ labels: { [labelNames.podUid]: pod.metadata.uid } });
  const podSandboxId = newestId(listed.filter(({ state }) => state === sandboxState.ready));
  if (podSandboxId === undefined) return refuse(exchange, 500, `failed to find sandboxID for pod ${describePod(pod)}`);
  const port = query
    .getAll("port")
    .flatMap((text) => text.split(","))
    .map(Number)
    .filter((number) => number > 0 && number < 65_536);
  await forward(exchange, () => context.runtime.portForward({ podSandboxId, port }));
}

/** `/run/…?cmd=…`: executes a command and responds with its output. */
export async function serveRun(...[exchange, context, names, query]: StreamCall): Promise<void> {
  const containerId = await findContainerId(exchange, context, names);
  if (containerId === undefined) return;
  const command = (query.get("cmd") ?? "").split(" ").filter((word) => word !== "");
  const { stdout, stderr, exitCode } = await context.runtime.execSync(containerId, command, 0);
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
  if (upgrade === undefined) return refuse(exchange, 400, "Upgrade request required");
  const { socket: client, head } = upgrade;
  const url = new URL(await locate());
  const backend = await dial(url.hostname.replace(/^\[|\]$/g, ""), Number(url.port || 80), client);
  // A client that went away meanwhile emits no further "close".
  if (client.destroyed) return void backend.destroy();
  backend.write(requestHead(exchange, url));
  if (head.length > 0) backend.write(head);
  splice(client, backend);
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

/** Connects to the runtime's streaming server. What comes from it is written to the client, and read no faster than the client takes it. */
function dial(host: string, port: number, client: Duplex): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const memory = new ReadMemory();
    const callback = (length: number, buffer: Uint8Array): boolean => {
      const hasRoom = client.write(buffer.subarray(0, length), () => memory.free(buffer));
      if (!hasRoom) client.once("drain", () => socket.resume());
      memory.used(length);
      return hasRoom;
    };
    const socket = connect({ host, port, onread: { buffer: () => memory.next(), callback } });
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

const [leastReadBytes, mostReadBytes] = [16 * 1024, 256 * 1024];

/** Buffers that are read into again once they were written: V8 would collect garbage for every few dozen MB of new ones. */
class ReadMemory {
  /** Of further buffers: large for a stream that fills small ones. */
  #bytes = leastReadBytes;
  #free: Uint8Array[] = [];

  next(): Uint8Array {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  /** @param length bytes that were read into a buffer */
  used(length: number): void {
    if (length < this.#bytes || length === mostReadBytes) return;
    this.#bytes = mostReadBytes;
    this.#free = [];
  }

  free(buffer: Uint8Array): void {
    if (buffer.length === this.#bytes) this.#free.push(buffer);
  }
}

/** Proxies the other direction and the ends of both. A half-close is passed on; an error closes both sides. */
function splice(client: Duplex, backend: Socket): void {
  const end = (): void => {
    client.destroy();
    backend.destroy();
  };
  client.on("error", end);
  backend.on("error", end);
  client.on("close", end);
  backend.on("end", () => client.end());
  backend.on("close", () => client.end(() => client.destroy()));
  client.pipe(backend);
}
