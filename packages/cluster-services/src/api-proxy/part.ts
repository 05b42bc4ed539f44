import { tlsOptions } from "@coxswain/apimachinery/client/dial";
import { configFromFlags } from "@coxswain/apimachinery/client/in-cluster";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Part, PartContext } from "../part.ts";
import { newApiProxyMetrics } from "./metrics.ts";
import { ApiProxy } from "./proxy.ts";
import { readServers, serversOf, writeServers } from "./server-file.ts";

const isOfServers = ({ metadata }: EndpointSlice): boolean =>
  metadata.namespace === "default" && metadata.labels?.["kubernetes.io/service-name"] === "kubernetes";

const shuffled = (servers: readonly string[]): string[] =>
  servers
    .map((server) => ({ server, key: Math.random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ server }) => server);

/**
 * Passes connections of this node's programs on to an API server that works. It starts with the list on disk, because this
 * process itself reaches the API through the proxy, and then keeps the list equal to the endpoints of the Service
 * `default/kubernetes`.
 */
export async function startApiProxy(context: PartContext): Promise<Part> {
  const { flags, informers, log, clock } = context;
  const file = flags["api-proxy-servers-file"];
  const config = await configFromFlags(flags.kubeconfig, flags.master);
  const proxy = new ApiProxy({
    port: flags["api-proxy-port"],
    servers: readServers(file),
    tls: (host) => tlsOptions(new URL(`https://${host.includes(":") ? `[${host}]` : host}`), config, undefined),
    shuffle: shuffled,
    metrics: newApiProxyMetrics(context.metrics),
    ...{ clock, log },
  });
  const port = await proxy.start();
  log.info("passing connections on to API servers", { port, servers: proxy.servers.join() });
  const slices = informers.for<EndpointSlice>(endpointSlices);
  let written = "";
  let problem: unknown;
  const changed = (slice: EndpointSlice): void => {
    if (!isOfServers(slice)) return;
    const servers = serversOf(slices.lister.list().filter(isOfServers));
    // A Service without endpoints is unreachable; the last known servers may come back.
    if (servers.length === 0 || servers.join() === written) return;
    proxy.setServers(servers);
    try {
      writeServers(file, servers);
      written = servers.join();
      problem = undefined;
    } catch (err) {
      problem = err;
      log.error("cannot update the list of API servers", err, { file });
    }
  };
  slices.addHandler({ added: changed, updated: (_, now) => changed(now), deleted: changed });
  return {
    check() {
      proxy.check();
      if (problem !== undefined) throw new Error(`cannot update the list of API servers: ${messageOf(problem)}`);
    },
    async stop() {
      proxy.close();
    },
  };
}
