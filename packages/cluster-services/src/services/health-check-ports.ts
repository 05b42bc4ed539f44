import type { Server } from "node:http";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { createServer } from "@coxswain/apimachinery/transport/node-http";

/**
 * Serves the health checks of load balancers at a Service's `healthCheckNodePort`: 200 when this node has endpoints of the Service,
 * otherwise 503. Source: pkg/proxy/healthcheck/service_health.go
 */
export interface HealthCheckPorts {
  /** @param localEndpoints their number on this node */
  set(service: Service, localEndpoints: number): void;
  remove(service: ObjectKey): void;
  close(): Promise<void>;
}

interface Listener {
  readonly port: number;
  readonly server: Server;
  body: string;
  localEndpoints: number;
}

/** @param host address to listen on; undefined: all */
export function newHealthCheckPorts(
  { recorder, log, nodeName }: { recorder: EventRecorder; log: Logger; nodeName: string },
  host?: string,
): HealthCheckPorts {
  const listeners = new Map<ObjectKey, Listener>();
  const remove = (key: ObjectKey): void => {
    const listener = listeners.get(key);
    listeners.delete(key);
    listener?.server.close();
    listener?.server.closeAllConnections();
  };
  const listen = (service: Service, key: ObjectKey, port: number): Listener => {
    const server = createServer((_request, response) => {
      const { body, localEndpoints } = listeners.get(key) ?? { body: "", localEndpoints: 0 };
      response.writeHead(localEndpoints > 0 ? 200 : 503, {
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
      });
      response.end(body);
    });
    server.on("error", (err) => {
      const message = `node ${nodeName} failed to start healthcheck "${key}" on port ${port}: ${err.message}`;
      log.error("cannot listen on the health check port of a Service", err, { service: key, port });
      recorder.event(service, "Warning", "FailedToStartServiceHealthcheck", message);
      if (listeners.get(key)?.server === server) listeners.delete(key); // tried again at the next change of the Service
    });
    server.listen({ port, ...(host !== undefined && { host }) });
    return { port, server, body: "", localEndpoints: 0 };
  };
  return {
    set(service, localEndpoints) {
      const { namespace = "", name = "" } = service.metadata;
      const key = `${namespace}/${name}`;
      const port = healthCheckPortOf(service);
      if (listeners.get(key)?.port !== port) remove(key);
      if (port === undefined) return;
      const listener = listeners.getOrInsertComputed(key, () =>
        listen({ apiVersion: "v1", kind: "Service", ...service }, key, port),
      );
      listener.localEndpoints = localEndpoints;
      listener.body = JSON.stringify({ service: { namespace, name }, localEndpoints }, undefined, "\t");
    },
    remove,
    async close() {
      await Promise.all([...listeners].map(([key, { server }]) => closed(server, () => remove(key))));
    },
  };
}

const closed = (server: Server, close: () => void): Promise<void> =>
  new Promise((resolve) => {
    server.once("close", resolve);
    close();
  });

/** The port of the Service's health checks; undefined without them. */
export const healthCheckPortOf = ({ spec }: Service): number | undefined =>
  spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local" ? spec.healthCheckNodePort || undefined : undefined;
