import type { TestContext } from "node:test";
import { discardLogger } from "../process/logging/logger.ts";
import type { ExchangeHandler } from "../serving/exchange.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "../serving/https-server.ts";
import { connectRaw, type RawClient, type RawClientOptions } from "../transport/http2/testing/raw-client.ts";
import { type TestPair, testPair } from "./tls.ts";
import { waitFor } from "./wait-for.ts";

export interface Http2Bench {
  readonly server: HttpServer;
  /** CA certificate of the server, PEM. */
  readonly ca: string;
  connect(options?: Partial<RawClientOptions>): Promise<RawClient>;
}

/**
 * Freezes `performance.now()`, so that timeouts in HTTP/2 tests do not depend on the load of the machine.
 * @returns a function that advances the time by `stepMs` repeatedly until the condition holds
 */
export function holdTime(t: TestContext): (stepMs: number, isSo: () => boolean, what: string) => Promise<void> {
  let now = performance.now();
  t.mock.method(performance, "now", () => now);
  return async (stepMs, isSo, what) => {
    const look = (): boolean => {
      now += stepMs;
      return isSo();
    };
    await waitFor(look, { what });
  };
}

let pair: Promise<TestPair> | undefined;

/** A server with the handler, and clients that write raw frames; closed when the test ends. */
export async function startHttp2Bench(
  t: TestContext,
  handler: ExchangeHandler,
  options: Partial<HttpServerOptions> = {},
): Promise<Http2Bench> {
  pair ??= testPair();
  const { cert, key, ca } = await pair;
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert, key },
    handler,
    log: discardLogger,
    ...options,
  });
  t.after(() => server.close());
  return {
    server,
    ca,
    async connect(more = {}) {
      const client = await connectRaw({ port: server.port, ca, ...more });
      t.after(() => void client.socket.destroy());
      return client;
    },
  };
}
