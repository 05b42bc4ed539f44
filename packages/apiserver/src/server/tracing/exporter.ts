import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import { encodeSpans, type Span } from "./otlp.ts";

export interface SpanExporter {
  add(span: Span): void;
  /** Exports the queued spans and closes the connection. */
  close(): Promise<void>;
}

interface ExporterOptions {
  /** A gRPC target. */
  readonly endpoint: string;
  readonly service: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Defaults of upstream's library. Source: go.opentelemetry.io/otel/sdk/trace/batch_span_processor.go */
const sendEveryMs = 5_000;
const mostAtOnce = 512;
const mostWaiting = 2_048;
const timeoutMs = 10_000;
const exportPath = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/** Exports spans to a collector in batches. Spans are dropped when an export fails, or when the queue is full. */
export function newSpanExporter({ endpoint, service, clock, log }: ExporterOptions): SpanExporter {
  let waiting: Span[] = [];
  let channel: GrpcChannel | undefined;
  let sending: Promise<void> | undefined;

  async function send(spans: readonly Span[]): Promise<void> {
    try {
      channel ??= new GrpcChannel(endpoint);
      await channel.unary(exportPath, Buffer.from(encodeSpans(spans, service)), timeoutMs);
    } catch (err) {
      log.error("traces were not exported", err, { endpoint, spans: spans.length });
    }
  }
  function flush(): Promise<void> {
    sending ??= (async () => {
      while (waiting.length > 0) {
        const spans = waiting.slice(0, mostAtOnce);
        waiting = waiting.slice(mostAtOnce);
        await send(spans);
      }
      sending = undefined;
    })();
    return sending;
  }
  const timer = clock.every(sendEveryMs, () => void flush());

  return {
    add(span) {
      if (waiting.length >= mostWaiting) return;
      waiting.push(span);
      if (waiting.length >= mostAtOnce) void flush();
    },
    async close() {
      timer.cancel();
      await flush();
      channel?.close();
    },
  };
}
