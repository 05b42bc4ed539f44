import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { ContainerStatus, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { NodePod } from "../pod/pod.ts";
import { findContainer } from "../pod/pod.ts";
import { type LogOptions, readLog } from "../runtime/logs.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound } from "../runtime/runtime.ts";

interface LogsContext {
  runtime: ContainerRuntime;
  podLogsDir: string;
  podByName: (namespace: string, name: string) => NodePod | undefined;
  statusOf: (pod: NodePod) => PodStatus | undefined;
  now: () => number;
}

class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** `GET /containerLogs/{namespace}/{pod}/{container}`. Source: pkg/kubelet/server/server.go getContainerLogs */
export async function serveLogs(
  exchange: Exchange,
  context: LogsContext,
  names: readonly string[],
  query: URLSearchParams,
): Promise<void> {
  let started = false;
  let pieces: ReturnType<typeof readLog> | undefined;
  try {
    const [namespace = "", podName = "", containerName = ""] = names;
    if (podName === "") throw new Refused(400, `{"message": "Missing podID."}`);
    if (containerName === "") throw new Refused(400, `{"message": "Missing container name."}`);
    if (namespace === "") throw new Refused(400, `{"message": "Missing podNamespace."}`);
    const options = logOptions(query, context.now());
    const pod = context.podByName(namespace, podName);
    if (pod === undefined) throw new Refused(404, `pod ${JSON.stringify(podName)} does not exist\n`);
    if (findContainer(pod, containerName) === undefined) {
      throw new Refused(404, `container ${JSON.stringify(containerName)} not found in pod ${JSON.stringify(podName)}\n`);
    }
    const id = containerId(podName, context.statusOf(pod), containerName, isSet(query, "previous"));
    const { logPath } = await context.runtime.containerStatus(id);
    const source = {
      path: logPath,
      root: context.podLogsDir,
      signal: exchange.signal,
      isRunning: async (): Promise<boolean> => {
        try {
          return (await context.runtime.containerStatus(id)).state === containerState.running;
        } catch (err) {
          if (isRuntimeNotFound(err)) return false;
          throw err;
        }
      },
    };
    pieces = readLog(source, options);
    const first = await pieces.next(); // errors before the first chunk still get a status code
    const stream = exchange.stream(200, { "content-type": "text/plain" });
    started = true;
    if (!first.done) {
      if (!stream.write(first.value)) await stream.drained();
      for await (const piece of pieces) if (!stream.write(piece)) await stream.drained();
    }
    stream.end();
  } catch (err) {
    if (started) {
      exchange.destroy();
      return;
    }
    const status = err instanceof Refused ? err.status : 500;
    exchange.respond(status, { "content-type": "text/plain; charset=utf-8" }, messageOf(err));
  } finally {
    // Closes the file of a client that disconnects before its first chunk: a file that garbage collection closes ends the process.
    await pieces?.return(undefined);
  }
}

/** @throws Refused 400 for malformed, 422 for invalid values */
function logOptions(query: URLSearchParams, now: number): LogOptions {
  const number = (name: string): number | undefined => {
    const text = query.get(name);
    if (text === null || text === "") return undefined;
    if (!/^-?\d{1,15}$/.test(text)) throw new Refused(400, `{"message": "Unable to decode query."}`);
    return Number(text);
  };
  const tail = query.get("tail"); // parameter of old clients
  const tailLines = tail === "all" ? undefined : number(tail ? "tail" : "tailLines");
  const sinceSeconds = number("sinceSeconds");
  const limitBytes = number("limitBytes");
  const sinceTime = query.get("sinceTime") ?? "";
  const invalid = (what: string): never => {
    throw new Refused(422, `{"message": "Invalid request: ${what}"}`);
  };
  if (tailLines !== undefined && tailLines < 0) invalid("tailLines: must be greater than or equal to 0");
  if (limitBytes !== undefined && limitBytes < 1) invalid("limitBytes: must be greater than 0");
  if (sinceSeconds !== undefined && sinceTime !== "") invalid("at most one of `sinceTime` or `sinceSeconds` may be specified");
  if (sinceSeconds !== undefined && sinceSeconds < 1) invalid("sinceSeconds: must be greater than 0");
  const since = sinceSeconds !== undefined ? now - sinceSeconds * 1000 : sinceTime === "" ? undefined : parseTime(sinceTime);
  return {
    tailLines,
    limitBytes,
    since,
    timestamps: isSet(query, "timestamps"),
    follow: isSet(query, "follow"),
  };
}

/** True when the parameter is present with any value except `0` and `false`. */
function isSet(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  return text !== null && text !== "0" && text.toLowerCase() !== "false";
}

/** The container ID whose log is requested: current or previous. @throws Refused 400 when there is none */
function containerId(podName: string, status: PodStatus | undefined, name: string, previous: boolean): string {
  const all: ContainerStatus[] = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  const found = all.find((candidate) => candidate.name === name);
  const who = `container ${JSON.stringify(name)} in pod ${JSON.stringify(podName)}`;
  const refuse = (what: string): never => {
    throw new Refused(400, what);
  };
  if (found === undefined) return refuse(`${who} is not available`);
  const { state, lastState } = found;
  const ended = lastState?.terminated?.containerID ?? "";
  if (previous) return ended === "" ? refuse(`previous terminated ${who} not found`) : strip(ended);
  if (state?.running !== undefined) return strip(found.containerID ?? "");
  if (state?.terminated !== undefined) {
    const own = state.terminated.containerID ?? "";
    if (own !== "") return strip(own);
    return ended === "" ? refuse(`${who} is terminated`) : strip(ended);
  }
  if (lastState?.terminated !== undefined) return ended === "" ? refuse(`${who} is terminated`) : strip(ended);
  const reason = state?.waiting?.reason;
  if (reason === "ErrImagePull") return refuse(`${who} is waiting to start: image can't be pulled`);
  if (reason === "ImagePullBackOff") return refuse(`${who} is waiting to start: trying and failing to pull image`);
  if (reason !== undefined) return refuse(`${who} is waiting to start: ${reason}`);
  return refuse(`${who} is waiting to start - no logs yet`);
}

function strip(id: string): string {
  return id.replace(/^[^:]*:\/\//, "");
}
