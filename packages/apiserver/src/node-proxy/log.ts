/**
 * Container logs: relays the kubelet's response as a text stream. Over a WebSocket each chunk is a message.
 * Source: k8s.io/apiserver pkg/registry/generic/rest/streamer.go, pkg/endpoints/handlers/responsewriters/writers.go
 * StreamObject
 */
import type { IncomingMessage } from "node:http";
import { badRequest, genericServerResponse, internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { acceptWebSocket, isWebSocketRequest } from "../request/web-socket.ts";
import { answerTo, type Dial, unreachable } from "./dial.ts";

const maxRefusalBytes = 50_000;

/** @throws StatusError from the kubelet's error response; 500 when it is unreachable. */
export async function streamLog(
  ctx: RequestContext,
  target: ConnectTarget,
  dial: Dial,
  resource: GroupResource & { name: string },
): Promise<void> {
  const { url } = target;
  const path = url.pathname + url.search;
  const headers = { "accept-encoding": "identity", host: url.host };
  const { signal } = ctx;
  const answer = await answerTo(dial, target, { method: "GET", path, headers, signal }).catch((err: unknown) => {
    throw unreachable(err, target);
  });
  const code = answer.statusCode ?? 500;
  if (code < 200 || code > 206) throw refusal(code, await readText(answer, maxRefusalBytes), resource);
  if (isWebSocketRequest(ctx.exchange)) return sendMessages(ctx, answer);
  const response = ctx.exchange.stream(200, { "content-type": "text/plain" });
  try {
    for await (const chunk of answer) {
      if (!response.write(chunk as Buffer)) await response.drained(); // cast: a response without an encoding yields Buffers
    }
    response.end();
  } catch {
    answer.destroy();
    ctx.exchange.destroy(); // truncated: the client must notice that the log is incomplete
  }
}

/** Messages are text with `base64.binary.k8s.io`, else raw bytes. Source: pkg/util/wsstream/stream.go */
const protocols = ["", "binary.k8s.io", "base64.binary.k8s.io"];

async function sendMessages({ exchange, audit }: RequestContext, answer: IncomingMessage): Promise<void> {
  const webSocket = await acceptWebSocket(exchange, { originRequired: false, protocols });
  if (webSocket === undefined) {
    answer.destroy();
    return;
  }
  audit?.started(101);
  const asText = webSocket.protocol === "base64.binary.k8s.io";
  try {
    // Cast: a response without an encoding yields Buffers.
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      const room = asText ? webSocket.send(Buffer.from(chunk.toString("base64")), "text") : webSocket.send(chunk, "binary");
      if (!room) await webSocket.drained();
    }
    webSocket.close();
  } catch {
    answer.destroy();
    webSocket.destroy();
  }
}

function refusal(code: number, text: string, resource: GroupResource & { name: string }): Error {
  if (code === 500) return internalError(new Error(text));
  if (code === 400) return badRequest(text);
  return genericServerResponse(code, "", resource, resource.name, text, 0, false);
}

async function readText(answer: IncomingMessage, limitBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer) {
    chunks.push(chunk as Buffer); // cast: a response without an encoding yields Buffers
    size += (chunk as Buffer).length; // cast: a response without an encoding yields Buffers
    if (size > limitBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes).toString();
}
