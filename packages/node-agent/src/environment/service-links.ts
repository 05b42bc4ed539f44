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
const known = new WeakMap<Service, ReadonlyMap<string, string>>();

function variablesOf(serviceName: string, service: Service): ReadonlyMap<string, string> {
  const variables = new Map<string, string>();
  const name = variableName(serviceName);
  const ip = service.spec?.clusterIP ?? "";
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (first === undefined) return variables;
  variables.set(`${name}_SERVICE_HOST`, ip);
  variables.set(`${name}_SERVICE_PORT`, String(first.port));
  for (const port of ports) {
    if (port.name) variables.set(`${name}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
  }
  const host = ip.includes(":") ? `[${ip}]` : ip;
  ports.forEach((port, i) => {
    const protocol = port.protocol || "TCP";
    const url = `${protocol.toLowerCase()}://${host}:${port.port}`;
    const prefix = `${name}_PORT_${port.port}_${protocol.toUpperCase()}`;
    if (i === 0) variables.set(`${name}_PORT`, url);
    variables.set(prefix, url);
    variables.set(`${prefix}_PROTO`, protocol.toLowerCase());
    variables.set(`${prefix}_PORT`, String(port.port));
    variables.set(`${prefix}_ADDR`, ip);
  });
  return variables;
}

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
