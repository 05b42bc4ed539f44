import type { Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chunksOf, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/**
 * Pure: service environment variables, in steps: for services in the Pod's namespace if enabled, and always for the service
 * `default/kubernetes`. Source: pkg/kubelet/envvars/envvars.go, kubelet_pods.go getServiceEnvVarMap
 */
export function* serviceEnvironment(
  services: readonly Service[],
  namespace: string,
  enableServiceLinks: boolean,
  masterNamespace = "default",
): Steps<Map<string, string>> {
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
  for (const [name, service] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const links = known.get(service) ?? (yield* variablesOf(name, service));
    known.set(service, links);
    for (const some of chunksOf(links, 5 * portsPerStep)) {
      for (const [variable, value] of some) variables.set(variable, value);
      yield;
    }
  }
  return variables;
}

/** Ports of a Service whose variables are made in one step. */
const portsPerStep = 1000;

/** A pure cache: the variables of a Service, of which it has five for each port, are those of each container of its namespace. */
const known = new WeakMap<Service, readonly Variable[]>();

type Variable = readonly [name: string, value: string];

function* variablesOf(serviceName: string, service: Service): Steps<readonly Variable[]> {
  const name = variableName(serviceName);
  const ip = service.spec?.clusterIP ?? "";
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (first === undefined) return [];
  const variables: Variable[] = [
    [`${name}_SERVICE_HOST`, ip],
    [`${name}_SERVICE_PORT`, String(first.port)],
  ];
  for (const some of chunksOf(ports, portsPerStep)) {
    for (const port of some) {
      if (port.name) variables.push([`${name}_SERVICE_PORT_${variableName(port.name)}`, String(port.port)]);
    }
    yield;
  }
  for (const some of chunksOf(ports, portsPerStep)) {
    for (const port of some) {
      const prefix = `${name}_PORT_${port.port}_${transportOf(port).toUpperCase()}`;
      variables.push(
        [prefix, urlOf(port, ip)],
        [`${prefix}_PROTO`, transportOf(port)],
        [`${prefix}_PORT`, String(port.port)],
        [`${prefix}_ADDR`, ip],
      );
    }
    yield;
  }
  variables.push([`${name}_PORT`, urlOf(first, ip)]);
  return variables;
}

const transportOf = ({ protocol }: ServicePort): string => (protocol || "TCP").toLowerCase();

const urlOf = (port: ServicePort, ip: string): string =>
  `${transportOf(port)}://${ip.includes(":") ? `[${ip}]` : ip}:${port.port}`;

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
