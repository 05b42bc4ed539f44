import { once } from "node:events";
import { createGzip, type Gzip } from "node:zlib";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { Exchange, ResponseStream } from "./exchange.ts";

/** The fastest level suffices: names and labels repeat in every line. */
const gzipLevel = 1;

/**
 * Streams all metrics with backpressure, gzipped if the client accepts that.
 * Source: prometheus/client_golang promhttp/http.go
 */
export async function answerMetrics(exchange: Exchange, metrics: Pick<MetricsRegistry, "chunks" | "contentType">): Promise<void> {
  const isPacked = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(exchange.headers["accept-encoding"] ?? ""));
  const headers = { "content-type": metrics.contentType, ...(isPacked && { "content-encoding": "gzip" }) };
  const response = exchange.stream(200, headers);
  try {
    if (isPacked) await writePacked(exchange, response, metrics);
    else for await (const chunk of metrics.chunks()) if (!response.write(chunk)) await response.drained();
    response.end();
  } catch (err) {
    if (!exchange.isGone) throw err;
  }
}

async function writePacked(
  exchange: Exchange,
  response: ResponseStream,
  metrics: Pick<MetricsRegistry, "chunks">,
): Promise<void> {
  const packer = createGzip({ level: gzipLevel });
  const copied = copy(packer, response);
  copied.catch(() => packer.destroy());
  for await (const chunk of metrics.chunks()) {
    if (!packer.write(chunk)) await once(packer, "drain", { signal: exchange.signal });
  }
  packer.end();
  await copied;
}

async function copy(packer: Gzip, response: ResponseStream): Promise<void> {
  // Cast: zlib's streams yield Buffers.
  for await (const chunk of packer) if (!response.write(chunk as Buffer)) await response.drained();
}
