import { currentSpan, parseTraceparent, traceparent } from "../../request/trace.ts";
import type { Tracer } from "./tracer.ts";

/**
 * With the gate APIServerTracing and without a configuration: the server has no spans of its own, but tells webhooks and etcd
 * what its client told it.
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
