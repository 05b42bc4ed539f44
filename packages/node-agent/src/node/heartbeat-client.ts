import type { CallOptions, Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/** The client methods that heartbeats use. */
export type HeartbeatClient = Pick<Client, "get" | "create" | "update" | "patch">;

/**
 * A client whose requests time out, so that a server that accepts a request and never responds does not block the next heartbeat.
 * Source: cmd/kubelet/app/server.go, heartbeatClientConfig.Timeout
 * @param limitMs 0: no limit
 */
export function withTimeLimit(client: HeartbeatClient, limitMs: number, clock: Clock): HeartbeatClient {
  if (limitMs <= 0) return client;
  const limited = async <T>(options: CallOptions | undefined, send: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const limit = new AbortController();
    const timer = clock.after(limitMs, () => limit.abort(new Error(`no answer within ${limitMs} ms`)));
    const signal = options?.signal === undefined ? limit.signal : AbortSignal.any([options.signal, limit.signal]);
    try {
      return await send(signal);
    } finally {
      timer.cancel();
    }
  };
  return {
    get: (ref, target, options) => limited(options, (signal) => client.get(ref, target, { ...options, signal })),
    create: (ref, object, options) => limited(options, (signal) => client.create(ref, object, { ...options, signal })),
    update: (ref, object, options) => limited(options, (signal) => client.update(ref, object, { ...options, signal })),
    patch: (ref, target, patch, options) =>
      limited(options, (signal) => client.patch(ref, target, patch, { ...options, signal })),
  };
}
