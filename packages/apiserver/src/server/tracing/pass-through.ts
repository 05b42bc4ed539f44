import { currentSpan, parseTraceparent, traceparent } from "../../request/trace.ts";
import type { Tracer } from "./tracer.ts";

/**
 * Used with the gate APIServerTracing but without a configuration: creates no spans, but propagates the client's trace
 * context to webhooks and etcd.
 * Source: k8s.io/apiserver pkg/endpoints/filters/traces.go, pkg/storage/storagebackend/factory/etcd3.go
 */
export const passThrough: Tracer = {
  requests: (handler) => (exchange) => {
    const span = parseTraceparent(exchange.headers["traceparent"]);
    return span === undefined ? handler(exchange) : currentSpan.run(span, () => handler(exchange));
  },
  calls: (counted) => (path, type) => {
    const method = counted(path, type);
    const parent = traceparent();
    return parent === undefined ? method : { ...method, traceparent: parent };
  },
};
