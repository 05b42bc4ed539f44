import { randomBytes } from "node:crypto";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import type { GrpcCalls } from "@coxswain/apimachinery/transport/grpc/calls";
import { currentSpan, formatTraceparent, parseTraceparent, type SpanContext } from "../../request/trace.ts";
import type { SpanExporter } from "./exporter.ts";

/**
 * Creates spans of requests and of their etcd calls, and propagates the trace context to webhooks and etcd. A request starts
 * a new trace, linked to the client's: clients do not decide about sampling.
 * Source: k8s.io/apiserver pkg/endpoints/filters/traces.go, otelhttp with WithPublicEndpoint
 */
export interface Tracer {
  requests(handler: ExchangeHandler): ExchangeHandler;
  /** Creates spans of unary calls; streams live as long as the server and get none. */
  calls(counted: GrpcCalls): GrpcCalls;
}

/** @param perMillion number of sampled traces per million, decided by the trace id */
export function newTracer(exporter: Pick<SpanExporter, "add">, perMillion: number, clock: Clock): Tracer {
  const newRoot = (): SpanContext => {
    const id = randomBytes(16);
    const sampled = Number(id.readBigUInt64BE() >> 1n) < (perMillion / 1e6) * 2 ** 63;
    return { traceId: id.toString("hex"), spanId: newSpanId(), sampled };
  };
  return {
    requests: (handler) => (exchange) => {
      const span = newRoot();
      const start = clock.now();
      const ended = (failed: boolean): void => {
        if (!span.sampled) return;
        const link = parseTraceparent(exchange.headers["traceparent"]);
        const attributes = {
          ...requestAttributes(exchange),
          "http.wrote_bytes": exchange.bytesWritten,
          "http.status_code": exchange.status,
        };
        exporter.add({
          ...{ traceId: span.traceId, spanId: span.spanId, link, name: "KubernetesAPI", kind: "server" },
          ...{ start, end: clock.now(), attributes, failed: failed || exchange.status >= 500 },
        });
      };
      return currentSpan.run(span, async () => {
        try {
          await handler(exchange);
          ended(false);
        } catch (err) {
          ended(true);
          throw err;
        }
      });
    },
    calls: (counted) => (path, type) => {
      const method = counted(path, type);
      const parent = currentSpan.getStore();
      const span = { ...(parent ?? newRoot()), spanId: newSpanId() };
      const traceparent = formatTraceparent(span);
      if (type !== "unary" || !span.sampled) return { ...method, traceparent };
      let start = clock.now();
      return {
        traceparent,
        started() {
          start = clock.now();
          method.started();
        },
        sent: () => method.sent(),
        received: () => method.received(),
        handled(code) {
          method.handled(code);
          const [, service = "", name = ""] = path.split("/");
          const attributes = { "rpc.system": "grpc", "rpc.service": service, "rpc.method": name, "rpc.grpc.status_code": code };
          exporter.add({
            ...{ traceId: span.traceId, spanId: span.spanId, parentId: parent?.spanId },
            ...{ name: `${service}/${name}`, kind: "client" },
            ...{ start, end: clock.now(), attributes, failed: code !== 0 },
          });
        },
      };
    },
  };
}

const newSpanId = (): string => randomBytes(8).toString("hex");

/** Source: OpenTelemetry's semantic conventions 1.4 of HTTP servers */
function requestAttributes({ method, url, headers, httpVersion, remoteAddress }: Exchange): Record<string, string> {
  const userAgent = headers["user-agent"];
  return {
    "net.transport": "ip_tcp",
    "net.peer.ip": remoteAddress,
    "http.server_name": "KubernetesAPI",
    "http.method": method,
    "http.target": url,
    "http.scheme": "https",
    "http.host": headers.host ?? "",
    "http.flavor": httpVersion === "2.0" ? "2" : httpVersion,
    ...(userAgent !== undefined && { "http.user_agent": userAgent }),
  };
}
