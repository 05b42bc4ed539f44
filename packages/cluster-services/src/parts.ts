import { existsSync } from "node:fs";
import { join } from "node:path";
import { apiProxyRights } from "./api-proxy/rights.ts";
import { dnsRights } from "./dns/rights.ts";
import { runProgram } from "./host/run-program.ts";
import { ingressRights } from "./ingress/rights.ts";
import { loadBalancerAddressesRights, loadBalancersRights } from "./load-balancers/rights.ts";
import { localVolumesRights } from "./local-volumes/rights.ts";
import { metricsApiRights } from "./metrics-api/rights.ts";
import type { PartDefinition } from "./part.ts";
import { configFile } from "./pod-network/names.ts";
import { podNetworkRights } from "./pod-network/rights.ts";

/** All parts, in start order. A part's code is in the folder of its name. */
export const parts: readonly PartDefinition[] = [
  {
    name: "api-proxy",
    runs: "node",
    onByDefault: false,
    rights: apiProxyRights,
    load: async () => (await import("./api-proxy/part.ts")).startApiProxy,
  },
  {
    name: "pod-network",
    runs: "node",
    onByDefault: true,
    rights: podNetworkRights,
    // Its CNI configuration would make the node Ready with a network that does not work.
    async removeLeft(flags) {
      if (!existsSync(join(flags["cni-conf-dir"], configFile))) return false;
      const { withdrawLeftOver } = await import("./pod-network/withdraw.ts");
      const { podNetworkSettings } = await import("./pod-network/settings.ts");
      return withdrawLeftOver(podNetworkSettings(flags), runProgram);
    },
    load: async () => (await import("./pod-network/part.ts")).startPodNetwork,
  },
  {
    name: "services",
    runs: "node",
    onByDefault: true,
    rights: {
      cluster: [
        { apiGroups: [""], resources: ["services", "nodes"], verbs: ["list", "watch"] },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      ],
    },
    removeLeft: async (flags) =>
      (await import("./services/left-rules.ts")).removeLeftRules(flags["iptables-chain-prefix"], runProgram),
    load: async () => (await import("./services/part.ts")).startServices,
  },
  {
    name: "dns",
    runs: "node",
    onByDefault: true,
    rights: dnsRights,
    load: async () => (await import("./dns/part.ts")).startDns,
  },
  {
    name: "metrics-api",
    runs: "once",
    onByDefault: true,
    rights: metricsApiRights,
    load: async () => (await import("./metrics-api/part.ts")).startMetricsApi,
  },
  {
    name: "local-volumes",
    runs: "node",
    onByDefault: true,
    rights: localVolumesRights,
    load: async () => (await import("./local-volumes/part.ts")).startLocalVolumes,
  },
  {
    name: "ingress",
    runs: "node",
    onByDefault: false,
    rights: ingressRights,
    load: async () => (await import("./ingress/part.ts")).startIngress,
  },
  {
    name: "load-balancers",
    runs: "once",
    onByDefault: true,
    rights: loadBalancersRights,
    load: async () => (await import("./load-balancers/part.ts")).startLoadBalancers,
  },
  {
    name: "load-balancer-addresses",
    runs: "node",
    onByDefault: true,
    rights: loadBalancerAddressesRights,
    async removeLeft(flags) {
      const { removeLeftAddresses } = await import("./load-balancers/left-addresses.ts");
      const { poolOf } = await import("./load-balancers/settings.ts");
      return removeLeftAddresses(poolOf(flags), flags["iptables-chain-prefix"], runProgram);
    },
    load: async () => (await import("./load-balancers/addresses-part.ts")).startLoadBalancerAddresses,
  },
];
