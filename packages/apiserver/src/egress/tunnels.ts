/**
 * Connections through the proxies of --egress-selector-config-file.
 * Source: k8s.io/apiserver pkg/server/egressselector/egress_selector.go, metrics/metrics.go
 */

import { isIPv6, type Socket } from "node:net";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import type { Connect, Connection } from "@coxswain/apimachinery/transport/connect";
import definitions from "../metrics.json" with { type: "json" };
import type { ProxyServers } from "./configuration.ts";
import { connectThroughHttpProxy } from "./http-connect.ts";
import { connectThroughKonnectivity } from "./konnectivity.ts";
import type { ProxyServer } from "./proxy-server.ts";
import { type SelectionName, selectionNames } from "./selections.ts";

/** Destinations without an entry are connected directly. */
export type Tunnels = Partial<Readonly<Record<SelectionName, Connect>>>;

interface Protocol {
  /** Requests a connection to `target` over the connection `connection` to the proxy. */
  readonly connectThrough: (connection: Socket, proxy: ProxyServer, target: string, signal: AbortSignal) => Promise<Connection>;
  /** Error text when the proxy does not respond in time. */
  readonly late: string;
  /** Translates an error of the connection to the proxy. */
  readonly unreachable?: (err: Error) => Error;
}

const protocols: Readonly<Record<ProxyServer["protocol"], Protocol>> = {
  http_connect: { connectThrough: connectThroughHttpProxy, late: "i/o timeout" },
  grpc: {
    connectThrough: connectThroughKonnectivity,
    late: "dial timeout, backstop",
    unreachable(err) {
      const why = JSON.stringify(`transport: Error while dialing ${dialErrorText(err)}`);
      return new Error(`rpc error: code = Unavailable desc = connection error: desc = ${why}`, { cause: err });
    },
  },
};

/** Timeout of both stages together: connecting to the proxy and requesting the tunnel. */
const dialTimeoutMs = 30_000;

export function newTunnels(proxies: ProxyServers, clock: Clock, metrics: MetricsRegistry): Tunnels {
  const durations = metrics.histogram(definitions.apiserver_egress_dialer_dial_duration_seconds);
  const failures = metrics.counter(definitions.apiserver_egress_dialer_dial_failure_count);

  const through = (proxy: ProxyServer): Connect => {
    const { protocol, transport } = proxy;
    const { connectThrough, late, unreachable = (err) => err } = protocols[protocol];
    return async (host, port) => {
      const startedMs = clock.monotonic();
      const giveUp = new AbortController();
      const timer = clock.after(dialTimeoutMs, () => giveUp.abort(new Error(late)));
      let stage: "connect" | "proxy" = "connect";
      try {
        const connection = await proxy.connect(giveUp.signal);
        stage = "proxy";
        const made = await connectThrough(connection, proxy, `${isIPv6(host) ? `[${host}]` : host}:${port}`, giveUp.signal);
        durations.labels(protocol, transport).observe((clock.monotonic() - startedMs) / 1000);
        return made;
      } catch (err) {
        failures.labels(protocol, transport, stage).inc();
        throw stage === "connect" ? unreachable(errorOf(err)) : err;
      } finally {
        timer.cancel();
      }
    };
  };

  const tunnels: { -readonly [Name in SelectionName]?: Connect } = {};
  for (const name of selectionNames) {
    const proxy = proxies[name];
    if (proxy !== undefined) tunnels[name] = through(proxy);
  }
  return tunnels;
}
