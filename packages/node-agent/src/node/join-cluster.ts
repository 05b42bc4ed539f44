import type { Node, NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AgentConfig } from "../agent-config.ts";
import type { Background } from "../background.ts";
import type { AgentEvents } from "../events.ts";
import type { ApiConnection } from "./api-connection.ts";
import { newCertificateMetrics } from "./certificate-metrics.ts";
import { rotateCertificate } from "./certificates.ts";
import { withTimeLimit } from "./heartbeat-client.ts";
import { runNodeLease } from "./lease.ts";
import { Registration } from "./registration.ts";

interface JoinOptions {
  config: AgentConfig;
  api: ApiConnection;
  background: Background;
  clock: Clock;
  log: Logger;
  metrics: MetricsRegistry;
  notify: AgentEvents;
  nodeName: string;
  /** SANs of the serving certificate. */
  names: { dnsNames: readonly string[]; ips: readonly string[] };
  initial: () => Node;
  status: (current: NodeStatus | undefined) => Promise<NodeStatus>;
  /** Called with the Node as stored in the API server. */
  onUpdate: (node: Node) => void;
}

/** Registers the node and maintains its status, lease and certificates. */
export function joinCluster(options: JoinOptions): Registration {
  const { config, api, background, clock, log, notify, nodeName } = options;
  const { signal } = background;
  let known: Node | undefined;
  notify.node("Normal", "Starting", "Starting kubelet.");
  const durationSeconds = config.nodeLeaseDurationSeconds;
  const limitMs = Math.min(config.nodeStatusUpdateFrequencyMs, durationSeconds * 1000);
  const heartbeat = withTimeLimit(api.heartbeat, limitMs, clock);
  const registration = new Registration({
    client: heartbeat,
    clock,
    log,
    initial: options.initial,
    register: config.registerNode,
    nodeName,
    status: (current) => options.status(current.status),
    updateFrequencyMs: config.nodeStatusUpdateFrequencyMs,
    reportFrequencyMs: config.nodeStatusReportFrequencyMs,
    onUpdate(node) {
      known = node;
      options.onUpdate(node);
    },
    notify: ({ type, reason, message }) => notify.node(type, reason, message),
  });
  background.add(registration.run(signal));
  background.add(runNodeLease({ client: heartbeat, clock, log, nodeName, durationSeconds, node: () => known }, signal));
  const metricsOf = (purpose: "client" | "server") => newCertificateMetrics(options.metrics, purpose, clock);
  const certificates = { nodeName, certDir: config.certDir, clock, log };
  if (config.rotateCertificates && api.certFile?.startsWith(config.certDir)) {
    const onRotated = (): void => log.info("New connections use the new client certificate");
    background.add(
      rotateCertificate(api.heartbeat, { ...certificates, purpose: "client", onRotated, metrics: metricsOf("client") }, signal),
    );
  }
  if (config.rotateServerCertificates) {
    const onRotated = (): void => log.info("Using the new serving certificate");
    const names = () => options.names;
    background.add(
      rotateCertificate(
        api.heartbeat,
        { ...certificates, purpose: "server", names, onRotated, metrics: metricsOf("server") },
        signal,
      ),
    );
  }
  return registration;
}
