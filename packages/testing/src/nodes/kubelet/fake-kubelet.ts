import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { ContainerStatus, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { createServer } from "@coxswain/apimachinery/transport/node-http";
import { InProcessTls } from "../../tls/in-process-tls.ts";
import { runExec } from "./exec.ts";
import { logOptionsOf, logText } from "./log-text.ts";
import { acceptStreams, refuse } from "./remote-command.ts";
import type { Exec, Logs } from "./rules.ts";

/** The interface to the fake nodes' Pods. */
interface KubeletPods {
  podOf(namespace: string, name: string): Pod | undefined;
  /** Logs and exec behaviour from the pod's rule. */
  answersOf(pod: Pod): { readonly logs: Logs; readonly exec: Exec | undefined };
  /** Resolves when a Pod may have changed. @throws the signal's reason when aborted */
  changed(signal: AbortSignal): Promise<void>;
}

/** The kubelet server of all fake nodes of a cluster, for connections within this process: logs and exec. */
export class FakeKubelet {
  readonly #pods: KubeletPods;
  readonly #clock: Clock;
  readonly #server: Server;
  /** Accepts a connection of the API server, which begins with TLS. */
  readonly accept: (connection: Duplex) => void;

  constructor(pods: KubeletPods, clock: Clock) {
    this.#pods = pods;
    this.#clock = clock;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.accept = new InProcessTls(this.#server).accept;
    this.#server.on("upgrade", (request, socket, head) => void this.#upgrade(request, socket, head));
  }

  /** Accepts a connection without TLS. */
  answer(connection: Duplex): void {
    this.#server.emit("connection", connection);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = (code: number, text: string): void => {
      response.writeHead(code, { "content-type": "text/plain; charset=utf-8" }).end(text);
    };
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://node");
    const [endpoint, ...names] = pathname.split("/").slice(1).map(decodeURIComponent);
    if (endpoint === "healthz") return void response.end("ok");
    if (endpoint !== "containerLogs") return refused(404, "fake nodes serve logs and exec only\n");
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the reader is gone")));
    try {
      await this.#log(names, searchParams, response, gone.signal, refused);
    } catch (err) {
      if (response.headersSent) response.destroy();
      else refused(500, (err as Error).message);
    }
  }

  async #log(
    [namespace = "", name = "", container = ""]: readonly string[],
    query: URLSearchParams,
    response: ServerResponse,
    signal: AbortSignal,
    refused: (code: number, text: string) => void,
  ): Promise<void> {
    const pod = this.#pods.podOf(namespace, name);
    if (pod === undefined) return refused(404, `pod ${JSON.stringify(name)} does not exist\n`);
    const previous = query.get("previous") === "true";
    const life = lifeOf(pod, container, previous);
    if (typeof life === "string") return refused(400, life);
    const options = logOptionsOf(query, this.#clock.now());
    const { logs } = this.#pods.answersOf(pod);
    const lines = typeof logs === "function" ? await logs({ pod, container, previous, follow: options.follow, signal }) : logs;
    response.writeHead(200, { "content-type": "text/plain" }).flushHeaders();
    for await (const bytes of logText(lines, options, { startedMs: life.startedMs, now: () => this.#clock.now() })) {
      if (signal.aborted) return;
      if (!response.write(bytes)) await new Promise<void>((resolve) => response.once("drain", resolve).once("close", resolve));
    }
    if (options.follow && !previous) await this.#untilEnded(pod, container, signal);
    response.end();
  }

  /** Resolves when the container ends or the client disconnects. */
  async #untilEnded(before: Pod, container: string, signal: AbortSignal): Promise<void> {
    const { namespace = "", name = "", uid } = before.metadata;
    const livesOf = (pod: Pod | undefined) => statusOf(pod, container)?.restartCount;
    while (!signal.aborted) {
      const pod = this.#pods.podOf(namespace, name);
      if (pod?.metadata.uid !== uid || livesOf(pod) !== livesOf(before)) return;
      if (statusOf(pod, container)?.state?.running === undefined) return;
      await this.#pods.changed(signal).catch(() => {});
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    const { pathname, searchParams: query } = new URL(request.url ?? "/", "http://node");
    const [endpoint, namespace = "", name = "", container = ""] = pathname.split("/").slice(1).map(decodeURIComponent);
    if (endpoint !== "exec") return refuse(socket, 404, `fake nodes have no ${endpoint}`);
    const pod = this.#pods.podOf(namespace, name);
    if (pod === undefined) return refuse(socket, 404, "pod does not exist");
    if (statusOf(pod, container)?.state?.running === undefined) {
      return refuse(socket, 500, `container not found (${JSON.stringify(container)})`);
    }
    const { exec } = this.#pods.answersOf(pod);
    if (exec === undefined) {
      return refuse(socket, 500, `the pods rule of ${namespace}/${name} has no \`exec\`, the function that answers commands`);
    }
    const is = (flag: string): boolean => query.get(flag) === "1";
    const tty = is("tty");
    const requested = { stdin: is("input"), stdout: is("output"), stderr: is("error") && !tty, tty };
    const streams = await acceptStreams(request, socket, head, requested);
    if (streams === undefined) return;
    const gone = new AbortController();
    socket.once("close", () => gone.abort(new Error("the client is gone")));
    await runExec(exec, { pod, container, command: query.getAll("command"), tty }, streams, gone.signal);
  }
}

function statusOf(pod: Pod | undefined, container: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod?.status ?? {};
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find(({ name }) => name === container);
}

/** Start time of the container whose log is requested, or the error text. Source: pkg/kubelet/kubelet_pods.go validateContainerLogStatus */
function lifeOf(pod: Pod, container: string, previous: boolean): { readonly startedMs: number } | string {
  const who = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.metadata.name)}`;
  const { state, lastState } = statusOf(pod, container) ?? {};
  const last = lastState?.terminated;
  if (previous) return last === undefined ? `previous terminated ${who} not found` : startOf(last);
  const life = state?.running ?? state?.terminated ?? last;
  if (life !== undefined) return startOf(life);
  return `${who} is waiting to start: ${state?.waiting?.reason ?? "no logs yet"}`;
}

const startOf = ({ startedAt }: { readonly startedAt?: string | null }) => ({ startedMs: Date.parse(startedAt ?? "") || 0 });
