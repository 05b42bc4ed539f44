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
  const limited = async <T, O extends CallOptions>(options: O | undefined, send: (options: O) => Promise<T>): Promise<T> => {
    const limit = new AbortController();
    const timer = clock.after(limitMs, () => limit.abort(new Error(`no answer within ${limitMs} ms`)));
    const signal = options?.signal === undefined ? limit.signal : AbortSignal.any([options.signal, limit.signal]);
    try {
      return await send({ ...options, signal } as O);
    } finally {
      timer.cancel();
    }
  };
  return {
    get: (ref, target, options) => limited(options, (each) => client.get(ref, target, each)),
    create: (ref, object, options) => limited(options, (each) => client.create(ref, object, each)),
    update: (ref, object, options) => limited(options, (each) => client.update(ref, object, each)),
    patch: (ref, target, patch, options) => limited(options, (each) => client.patch(ref, target, patch, each)),
  };
}
