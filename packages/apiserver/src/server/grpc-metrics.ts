/** Metrics of gRPC calls to etcd, under the names of upstream's library. Source: go-grpc-prometheus client_metrics.go */
import { grpcCodeNames } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import type { CounterChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { GrpcCalls, GrpcMethod } from "@coxswain/apimachinery/transport/grpc/calls";

const method = ["grpc_type", "grpc_service", "grpc_method"];

export function newGrpcMetrics(registry: MetricsRegistry): GrpcCalls {
  const counter = (name: string, help: string, labels: readonly string[] = method) => registry.counter({ name, help, labels });
  const started = counter("grpc_client_started_total", "Total number of RPCs started on the client.");
  const sent = counter("grpc_client_msg_sent_total", "Total number of gRPC stream messages sent by the client.");
  const received = counter("grpc_client_msg_received_total", "Total number of RPC stream messages received by the client.");
  const handled = counter(
    "grpc_client_handled_total",
    "Total number of RPCs completed by the client, regardless of success or failure.",
    [...method, "grpc_code"],
  );
  const known = new Map<string, GrpcMethod>();
  return (path, type) => {
    let found = known.get(path);
    if (found === undefined) {
      const [, service = "", name = ""] = path.split("/");
      const labels = [type, service, name] as const;
      // Cast: a child for each of the three.
      const [start, send, receive] = [started, sent, received].map((family) => family.labels(...labels)) as [
        CounterChild,
        CounterChild,
        CounterChild,
      ];
      const ended: CounterChild[] = [];
      found = {
        started: () => start.inc(),
        sent: () => send.inc(),
        received: () => receive.inc(),
        handled(code) {
          ended[code] ??= handled.labels(...labels, grpcCodeNames[code] ?? `Code(${code})`);
          ended[code].inc();
        },
      };
      known.set(path, found);
    }
    return found;
  };
}
