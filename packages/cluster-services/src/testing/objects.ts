import type { Service, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

/** A Service `default/<name>` with TCP port 80. */
export const aService = (name: string, spec: Partial<ServiceSpec> = {}, lbAddresses: readonly string[] = []): Service => ({
  metadata: { namespace: "default", name },
  spec: { type: "ClusterIP", clusterIP: "10.96.0.10", ports: [{ port: 80, protocol: "TCP" }], ...spec },
  status: { loadBalancer: { ingress: lbAddresses.map((ip) => ({ ip })) } },
});

export const anEndpoint = (address: string, nodeName: string, extra: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  nodeName,
  conditions: { ready: true, serving: true, terminating: false },
  ...extra,
});

/** The slice of a Service, with its ports' name and number. */
export const aSlice = (
  service: string,
  endpoints: Endpoint[],
  port = 8080,
  extra: Partial<EndpointSlice> = {},
): EndpointSlice => ({
  metadata: { namespace: "default", name: `${service}-1`, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  endpoints,
  ports: [{ name: "", port, protocol: "TCP" }],
  ...extra,
});
