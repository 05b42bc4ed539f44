/**
 * --egress-selector-config-file: over which proxy the server reaches others. What goes to the cluster (kubelets, pods,
 * services, webhooks and servers behind services) may go through HTTP CONNECT, over TCP, TLS or a unix socket.
 * Source: k8s.io/apiserver pkg/server/egressselector/config.go, pkg/apis/apiserver/types.go
 */
import { existsSync, readFileSync } from "node:fs";
import { parseYaml } from "@coxswain/apimachinery/codec/yaml";
import {
  duplicate,
  type FieldError,
  formatFieldErrors,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/errors/field-error";

export interface EgressSelection {
  readonly name?: string;
  readonly connection?: { readonly proxyProtocol?: string; readonly transport?: Transport };
}

export interface Transport {
  readonly tcp?: TcpTransport;
  readonly uds?: { readonly udsName?: string };
}

export interface TcpTransport {
  readonly url?: string;
  readonly tlsConfig?: { readonly caBundle?: string; readonly clientKey?: string; readonly clientCert?: string };
}

/** `master` is an older name of `controlplane`. */
const names = ["cluster", "controlplane", "etcd", "master"];
const protocols = ["Direct", "HTTPConnect", "GRPC"];
const versions = ["apiserver.k8s.io/v1alpha1", "apiserver.k8s.io/v1beta1"];

/**
 * @param path "" for none
 * @returns how the cluster is reached; undefined: directly
 * @throws Error that says what cannot be used
 */
export function readEgressConfiguration(path: string): Transport | undefined {
  if (path === "") return undefined;
  if (!existsSync(path)) throw new Error(`egress-selector-config-file ${path} does not exist`);
  const selections = readSelections(path);
  const errors = egressErrors(selections);
  if (errors.length > 0) throw new Error(`failed to validate egress selector configuration: ${formatFieldErrors(errors)}`);
  let cluster: Transport | undefined;
  for (const { name = "", connection } of selections) {
    if (connection?.proxyProtocol === "Direct") continue;
    const isCluster = name.toLowerCase() === "cluster";
    if (!isCluster || connection?.proxyProtocol !== "HTTPConnect") {
      throw new Error(`egress selector: ${connection?.proxyProtocol} for ${name} is not supported by this server`);
    }
    cluster = connection.transport;
  }
  return cluster;
}

function readSelections(path: string): readonly EgressSelection[] {
  const failed = (why: string): Error => new Error(`failed to read egress selector config: ${why}`);
  let file: unknown;
  try {
    file = parseYaml(readFileSync(path, "utf8"));
  } catch (err) {
    throw failed((err as Error).message);
  }
  const { apiVersion, kind, egressSelections } = (file ?? {}) as Record<string, unknown>;
  if (kind !== "EgressSelectorConfiguration" || !versions.includes(String(apiVersion))) {
    throw failed(`no kind ${JSON.stringify(kind ?? "")} is registered for version ${JSON.stringify(apiVersion ?? "")}`);
  }
  if (egressSelections === undefined || egressSelections === null) return [];
  const isList = Array.isArray(egressSelections) && egressSelections.every((item) => typeof item === "object" && item !== null);
  if (!isList) throw failed("egressSelections is not a list of objects");
  return egressSelections;
}

/** All that is wrong, in upstream's order. */
export function egressErrors(selections: readonly EgressSelection[]): FieldError[] {
  const path = "service.connection";
  const errors: FieldError[] = [];
  for (const { connection } of selections) {
    const { proxyProtocol = "", transport } = connection ?? {};
    if (!protocols.includes(proxyProtocol)) errors.push(notSupported(`${path}.protocol`, proxyProtocol, protocols));
    else if (proxyProtocol === "HTTPConnect") errors.push(...httpConnectErrors(transport, path));
    else if (proxyProtocol === "GRPC") errors.push(...grpcErrors(transport, path));
    else if (transport) errors.push(invalidValue(`${path}.transport`, "direct", "config must be absent for direct connect"));
  }
  const seen = new Set<string>();
  for (const [i, { name = "" }] of selections.entries()) {
    const lower = name.toLowerCase();
    if (seen.has(lower)) errors.push(duplicate(`${path}[${i}]`, lower));
    else if (!names.includes(lower)) errors.push(notSupported(path, lower, names));
    seen.add(lower);
  }
  return errors;
}

function httpConnectErrors(transport: Transport | undefined, path: string): FieldError[] {
  if (!transport) return [required(`${path}.transport`, "transport must be set for HTTPConnect")];
  const { tcp, uds } = transport;
  if (tcp && uds) return [invalidValue(`${path}.tcp`, tcp, "TCP and UDS cannot both be set")];
  if (tcp) return tcpErrors(tcp, path);
  return uds ? udsErrors(uds, path) : [required(`${path}.tcp`, "One of TCP or UDS must be set")];
}

function grpcErrors(transport: Transport | undefined, path: string): FieldError[] {
  if (!transport) return [required(`${path}.transport`, "transport must be set for GRPC")];
  return transport.uds ? udsErrors(transport.uds, path) : [required(`${path}.uds`, "UDS must be set with GRPC")];
}

function udsErrors({ udsName = "" }: NonNullable<Transport["uds"]>, path: string): FieldError[] {
  return udsName === "" ? [invalidValue(`${path}.udsName`, "nil", "must be present for UDS connections")] : [];
}

function tcpErrors({ url = "", tlsConfig }: TcpTransport, path: string): FieldError[] {
  if (url.startsWith("http://")) {
    return tlsConfig ? [invalidValue(`${path}.tlsConfig`, "nil", "config must not be present when using HTTP")] : [];
  }
  if (url.startsWith("https://")) return tlsErrors(tlsConfig, `${path}.tlsConfig`);
  return [invalidValue(`${path}.url`, url, "supported connection protocols are http:// and https://")];
}

function tlsErrors(tls: TcpTransport["tlsConfig"], path: string): FieldError[] {
  if (!tls) return [required(path, "TLSConfig must be present when using HTTPS")];
  const errors: FieldError[] = [];
  for (const { field, what, mustBe } of [
    { field: "caBundle", what: "TLS config ca bundle", mustBe: undefined },
    { field: "clientCert", what: "TLS client cert", mustBe: "Using TLS requires clientCert" },
    { field: "clientKey", what: "TLS client key", mustBe: "Using TLS requires requires clientKey" },
  ] as const) {
    const file = tls[field] ?? "";
    if (file === "" && mustBe) errors.push(invalidValue(`${path}.${field}`, "nil", mustBe));
    else if (file !== "" && !existsSync(file)) errors.push(invalidValue(`${path}.${field}`, file, `${what} does not exist`));
  }
  return errors;
}
