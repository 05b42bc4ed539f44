import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/**
 * Pure: service environment variables: for services in the Pod's namespace if enabled, and always for the service
 * `default/kubernetes`. Source: pkg/kubelet/envvars/envvars.go, kubelet_pods.go getServiceEnvVarMap
 */
export function serviceEnvironment(
  services: readonly Service[],
  namespace: string,
  enableServiceLinks: boolean,
  masterNamespace = "default",
): Map<string, string> {
  const wanted = new Map<string, Service>();
  for (const service of services) {
    const { name = "", namespace: own = "" } = service.metadata;
    const clusterIp = service.spec?.clusterIP ?? "";
    if (clusterIp === "" || clusterIp === "None") continue;
    if (own === masterNamespace && name === "kubernetes") {
      if (!wanted.has(name)) wanted.set(name, service);
    } else if (own === namespace && enableServiceLinks) {
      wanted.set(name, service);
    }
  }
  const variables = new Map<string, string>();
  for (const [name, service] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const [variable, value] of known.getOrInsertComputed(service, () => variablesOf(name, service)))
      variables.set(variable, value);
  return variables;
}

/** A pure cache: the variables of a Service, of which it has five for each port, are those of each container of its namespace. */
const known = new WeakMap<Service, readonly Variable[]>();

type Variable = readonly [name: string, value: string];

function variablesOf(serviceName: string, service: Service): readonly Variable[] {
  const name = variableName(serviceName);
  const ip = service.spec?.clusterIP ?? "";
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (first === undefined) return [];
  const variables: Variable[] = [
    [`${name}_SERVICE_HOST`, ip],
    [`${name}_SERVICE_PORT`, String(first.port)],
  ];
  for (const port of ports) {
    if (port.name) variables.push([`${name}_SERVICE_PORT_${variableName(port.name)}`, String(port.port)]);
  }
  const host = ip.includes(":") ? `[${ip}]` : ip;
  for (const { port, protocol } of ports) {
    const transport = (protocol || "TCP").toLowerCase();
    const url = `${transport}://${host}:${port}`;
    const prefix = `${name}_PORT_${port}_${transport.toUpperCase()}`;
    variables.push([prefix, url], [`${prefix}_PROTO`, transport], [`${prefix}_PORT`, String(port)], [`${prefix}_ADDR`, ip]);
  }
  const { port, protocol } = first;
  variables.push([`${name}_PORT`, `${(protocol || "TCP").toLowerCase()}://${host}:${port}`]);
  return variables;
}

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
