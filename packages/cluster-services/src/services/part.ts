import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ServicesFlags } from "../flags.ts";
import type { Part, PartContext } from "../part.ts";
import type { Family } from "./addresses.ts";
import { type HealthCheckPorts, healthCheckPortOf, newHealthCheckPorts } from "./health-check-ports.ts";
import { hasIpv6, type KernelHost, prepareKernel, setConntrackTimeouts, thisMachine } from "./kernel-settings.ts";
import { newProxyMetrics } from "./metrics.ts";
import type { RuleSettings } from "./port-rules.ts";
import { isForOthers, servicePorts, type ThisNode } from "./service-port.ts";
import { ServiceRules } from "./service-rules.ts";
import { parseAddress, StatusPorts } from "./status-ports.ts";
import { byService, byServiceIndex, watchChanges } from "./watch-changes.ts";

/** Services: sends connections to Services on to their endpoints by rules in the kernel, as kube-proxy does. */
export async function startServices(context: PartContext, host: KernelHost = thisMachine): Promise<Part> {
  const { flags, informers, nodeName, clock, signal, fail } = context;
  const { log, metrics, recorder } = context;
  const settings = settingsOf(flags);
  const health = parseAddress("healthz-bind-address", flags["healthz-bind-address"]);
  const metricsAddress = parseAddress("metrics-bind-address", flags["metrics-bind-address"]);
  const serviceInformer = informers.for<Service>(services);
  const sliceInformer = informers.for<EndpointSlice>(endpointSlices);
  const nodeInformer = informers.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  sliceInformer.addIndex(byServiceIndex, byService);
  await Promise.all([serviceInformer, sliceInformer, nodeInformer].map((informer) => informer.waitForSync(signal)));

  const bridgePassesRules = await prepareKernel(settings.localhostNodePorts, host, log);
  if (!bridgePassesRules)
    log.warn(
      "the kernel module br_netfilter is not loaded: connections between pods of this node through a Service are masqueraded",
    );
  const timeouts = {
    establishedMs: flags["conntrack-tcp-timeout-established"],
    closeWaitMs: flags["conntrack-tcp-timeout-close-wait"],
  };
  await setConntrackTimeouts(timeouts, host, log);
  const present: Family[] = (await hasIpv6(host.run, host.root)) ? ["IPv4", "IPv6"] : ["IPv4"];
  signal.throwIfAborted();

  const thisNode = (): ThisNode => ({
    name: nodeName,
    zone: nodeInformer.lister.get(nodeName)?.metadata.labels?.["topology.kubernetes.io/zone"],
  });
  const families = present.map((family): ServiceRules => {
    const isOfFamily = (cidr: string): boolean => parseCidr(cidr)?.family === (family === "IPv4" ? 4 : 6);
    const podCidrs = nodeInformer.lister.get(nodeName)?.spec?.podCIDRs ?? [];
    return new ServiceRules({
      settings: { ...settings, family, clusterCidr: flags["cluster-cidr"].find(isOfFamily) },
      keys: () => serviceInformer.lister.list().map(keyOf),
      portsOf(key) {
        const service = serviceInformer.lister.get(key);
        return service === undefined ? [] : servicePorts(service, slicesOf(sliceInformer.lister, key), thisNode(), family);
      },
      masqueradedNetworks: bridgePassesRules ? [] : podCidrs.filter(isOfFamily),
      checkPeriodMs: flags["iptables-sync-period"],
      onRefused(key, reason) {
        const service = serviceInformer.lister.get(key);
        if (service !== undefined) recorder.event(service, "Warning", "RulesRefused", `on node ${nodeName}: ${reason}`);
      },
      run: host.run,
      turns: context.turns,
      metrics: newProxyMetrics(metrics),
      ...{ log, clock },
    });
  });
  const healthChecks = newHealthCheckPorts({ recorder, log, nodeName });
  const changed = (key: ObjectKey, triggers?: readonly number[]): void => {
    for (const rules of families) rules.changed(key, triggers);
    setHealthCheck(healthChecks, serviceInformer.lister.get(key), key, slicesOf(sliceInformer.lister, key), thisNode());
  };
  watchChanges(context, { changed, allChanged: () => families.forEach((rules) => void rules.allChanged()), thisNode });
  const statusPorts = new StatusPorts({
    health,
    metrics: metricsAddress,
    lateMs: () => Math.max(...families.map((rules) => rules.lateMs())),
    mostLateMs: 2 * flags["iptables-sync-period"],
    renderMetrics: () => metrics.render(),
    ...{ recorder, nodeName, log, clock },
  });
  const running = Promise.all([...families.map((rules) => rules.run(signal)), statusPorts.run(signal)]);
  running.catch(fail);
  return {
    check() {
      for (const rules of families) rules.check();
    },
    // The rules stay: a restart must not end connections. `--cleanup` removes them.
    async stop() {
      await Promise.all([running, healthChecks.close()]);
    },
  };
}

function setHealthCheck(
  healthChecks: HealthCheckPorts,
  service: Service | undefined,
  key: ObjectKey,
  slices: readonly EndpointSlice[],
  node: ThisNode,
): void {
  // Without such a port nobody needs the number of local endpoints, for which all of them are looked at.
  if (service === undefined || isForOthers(service) || healthCheckPortOf(service) === undefined) {
    healthChecks.remove(key);
    return;
  }
  const local = slices.flatMap(({ endpoints }) =>
    endpoints.filter(({ nodeName, conditions }) => nodeName === node.name && conditions?.ready !== false),
  );
  healthChecks.set(service, new Set(local.map(({ addresses }) => addresses[0])).size);
}

const slicesOf = (lister: Lister<EndpointSlice>, key: ObjectKey): EndpointSlice[] => lister.byIndex(byServiceIndex, key);

/** The kernel allows 28 characters, and the longest name after the prefix has 14. */
const longestPrefix = 14;

/** @throws ConfigError for an invalid flag */
export function settingsOf(flags: ServicesFlags): RuleSettings {
  const prefix = flags["iptables-chain-prefix"];
  if (!/^[A-Za-z][\w-]*$/.test(prefix) || prefix.length > longestPrefix)
    throw new ConfigError(
      `--iptables-chain-prefix must begin with a letter and have at most ${longestPrefix} letters, digits, - and _, not ${JSON.stringify(prefix)}`,
    );
  const masqueradeBit = flags["iptables-masquerade-bit"];
  if (masqueradeBit < 0 || masqueradeBit > 31)
    throw new ConfigError(`--iptables-masquerade-bit must be within the range [0, 31], not ${masqueradeBit}`);
  for (const flag of ["cluster-cidr", "nodeport-addresses"] as const) {
    const wrong = flags[flag].find((cidr) => parseCidr(cidr) === undefined);
    if (wrong !== undefined) throw new ConfigError(`--${flag} must contain CIDR blocks, not ${JSON.stringify(wrong)}`);
  }
  return {
    family: "IPv4",
    prefix,
    masqueradeBit,
    clusterCidr: undefined,
    masqueradeAll: flags["masquerade-all"],
    nodePortNetworks: flags["nodeport-addresses"],
    localhostNodePorts: flags["iptables-localhost-nodeports"],
  };
}
