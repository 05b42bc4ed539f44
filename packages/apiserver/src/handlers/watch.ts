/**
 * A watch response, which lasts until its timeout, or until the client disconnects or reads too slowly. The events of one
 * event-loop turn are framed once for all watchers with the same selection (watch-frames.ts) and written together
 * (watch-delivery.ts). Over a WebSocket each event is a message: text for JSON, binary (without the length prefix) for protobuf.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/watch.go
 */

import { jsonMediaType, protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { longTimers } from "@coxswain/apimachinery/process/clock/long-timers";
import type { RequestContext } from "../request/context.ts";
import { acceptWebSocket, isWebSocketRequest } from "../request/web-socket.ts";
import type { Call } from "./env.ts";
import { watchMetricsOf } from "./metrics.ts";
import { negotiateFor, type Output } from "./negotiation.ts";
import { type ListOptions, revisionParam } from "./options.ts";
import { linkedEntry } from "./response.ts";
import { includeObjectParam } from "./transform.ts";
import { deliver, type Sink } from "./watch-delivery.ts";
import { framerFor } from "./watch-frames.ts";

/** Handles a watch; resolves when it has ended. */
export async function watch(call: Call, options: ListOptions): Promise<void> {
  const { ctx, served, env } = call;
  negotiateFor(call); // as for a list; checked first, because its error names other types
  const output = negotiateFor(call, true);
  if (output.as === "Table") includeObjectParam(ctx.query); // validate before the response begins
  const timers = longTimers(env.clock ?? realClock);
  const timeoutMs = watchTimeoutMs(options.timeoutSeconds, env.minRequestTimeoutMs);
  const end = new AbortController();
  const stop = (): void => end.abort();
  const timer = timers.after(timeoutMs, stop);
  // An abort that has already happened fires no event.
  if (ctx.signal.aborted) stop();
  ctx.signal.addEventListener("abort", stop, { once: true });
  try {
    const store = served.store!;
    const stream = await store.watch(call.namespace, {
      labels: options.labels,
      fields: options.fields,
      revision: revisionParam(options.resourceVersion, "cache"),
      bookmarks: options.allowWatchBookmarks,
      deadlineMs: env.services.now() + timeoutMs,
      signal: end.signal,
    });
    const sink = isWebSocketRequest(ctx.exchange) ? await webSocketSink(ctx, output) : bodySink(ctx, output);
    if (sink === undefined) return stream.stop();
    const metrics = env.metrics && watchMetricsOf(env.metrics, served);
    metrics?.watchers.inc();
    try {
      const framer = framerFor(
        call,
        output,
        metrics,
        call.env.gates.namesLinks ? (entry) => linkedEntry(call, entry) : undefined,
      );
      const complete = await deliver({ stream, sink, framer, timers, turns: env.services.turns, started: ctx.watchStarted });
      if (complete) sink.end();
      else ctx.exchange.destroy();
    } finally {
      metrics?.watchers.dec();
    }
  } finally {
    timer.cancel();
    ctx.signal.removeEventListener("abort", stop);
    end.abort();
  }
}

/**
 * `timeoutSeconds` in ms, or a random time between the minimum and its double, so that watches do not all end together. A
 * negative value ends the watch at once.
 */
export function watchTimeoutMs(timeoutSeconds: number | undefined, minRequestTimeoutMs: number, random = Math.random): number {
  if (timeoutSeconds) return Math.max(0, timeoutSeconds * 1000);
  return Math.floor(minRequestTimeoutMs * (1 + random()));
}

function bodySink({ exchange }: RequestContext, { mediaType }: Output): Sink {
  const headers = { "content-type": mediaType === jsonMediaType ? jsonMediaType : `${mediaType};stream=watch` };
  const response = exchange.stream(200, headers);
  return {
    write: ({ bytes }) => response.write(bytes),
    drained: () => response.drained(),
    end: () => response.end(),
  };
}

/** @returns undefined when the handshake was rejected */
async function webSocketSink({ exchange, audit }: RequestContext, { mediaType }: Output): Promise<Sink | undefined> {
  const webSocket = await acceptWebSocket(exchange, { originRequired: true });
  if (webSocket === undefined) return undefined;
  audit?.started(101);
  const binary = mediaType === protobufMediaType;
  return {
    write({ frames }) {
      let room = true;
      for (const frame of frames) {
        room = webSocket.send(binary ? frame.subarray(frameLengthBytes) : frame, binary ? "binary" : "text");
      }
      return room;
    },
    drained: () => webSocket.drained(),
    end: () => webSocket.close(),
  };
}

/** Length prefix of a protobuf event in a plain body; WebSocket messages do not need it. */
const frameLengthBytes = 4;
