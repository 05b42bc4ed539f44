/** Validation of egress selections. Source: k8s.io/apiserver pkg/server/egressselector/config.go */
import { existsSync } from "node:fs";
import {
  duplicate,
  type FieldError,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import {
  type Connection,
  type EgressSelection,
  selectionNames,
  type TcpTransport,
  type TlsConfig,
  type Transport,
  type UdsTransport,
} from "./selections.ts";

const path = "service.connection";

/** Validation of the transport by protocol. */
const protocols: Readonly<Record<string, (transport: Transport | undefined) => FieldError[]>> = {
  Direct: directErrors,
  HTTPConnect: httpConnectErrors,
  GRPC: grpcErrors,
};

/** All errors, in upstream's order. */
export function egressErrors(selections: readonly EgressSelection[]): FieldError[] {
  const seen = new Set<string>();
  return [
    ...selections.flatMap(({ connection }) => connectionErrors(connection)),
    ...selections.flatMap(({ name = "" }, i) => nameErrors(name.toLowerCase(), i, seen)),
  ];
}

function connectionErrors({ proxyProtocol = "", transport }: Connection = {}): FieldError[] {
  const errors = Object.hasOwn(protocols, proxyProtocol) ? protocols[proxyProtocol] : undefined;
  return errors?.(transport) ?? [notSupported(`${path}.protocol`, proxyProtocol, Object.keys(protocols))];
}

function nameErrors(name: string, i: number, seen: Set<string>): FieldError[] {
  if (seen.has(name)) return [duplicate(`${path}[${i}]`, name)];
  seen.add(name);
  // Cast: `includes` takes only members of the list.
  return (selectionNames as readonly string[]).includes(name) ? [] : [notSupported(path, name, selectionNames)];
}

function directErrors(transport: Transport | undefined): FieldError[] {
  if (transport === undefined) return [];
  return [invalidValue(`${path}.transport`, "direct", "Transport config should be absent for direct connect")];
}

function httpConnectErrors(transport: Transport | undefined): FieldError[] {
  if (transport === undefined) return [required(`${path}.transport`, "transport must be set for HTTPConnect")];
  const { tcp, uds } = transport;
  if (tcp && uds) return [invalidValue(`${path}.tcp`, new GoText(goSyntaxOf(tcp)), "TCP and UDS cannot both be set")];
  if (tcp) return tcpErrors(tcp);
  return uds ? udsErrors(uds) : [required(`${path}.tcp`, "One of TCP or UDS must be set")];
}

/** Go's %#v of the struct. Upstream prints the address of the TLSConfig; here it is always 0x0. */
function goSyntaxOf({ url = "", tlsConfig }: TcpTransport): string {
  return `apiserver.TCPTransport{URL:${JSON.stringify(url)}, TLSConfig:(*apiserver.TLSConfig)(${tlsConfig ? "0x0" : "nil"})}`;
}

function grpcErrors(transport: Transport | undefined): FieldError[] {
  if (transport === undefined) return [required(`${path}.transport`, "transport must be set for GRPC")];
  return transport.uds ? udsErrors(transport.uds) : [required(`${path}.uds`, "UDS must be set with GRPC")];
}

function udsErrors({ udsName = "" }: UdsTransport): FieldError[] {
  return udsName === "" ? [invalidValue(`${path}.udsName`, "nil", "UDSName should be present for UDS connections")] : [];
}

function tcpErrors({ url = "", tlsConfig }: TcpTransport): FieldError[] {
  if (url.startsWith("https://")) return tlsErrors(tlsConfig);
  if (!url.startsWith("http://"))
    return [invalidValue(`${path}.url`, url, "supported connection protocols are http:// and https://")];
  return tlsConfig ? [invalidValue(`${path}.tlsConfig`, "nil", "TLSConfig config should not be present when using HTTP")] : [];
}

/** Files of a TLSConfig. */
const tlsFiles = [
  { field: "caBundle", what: "TLS config ca bundle" },
  { field: "clientCert", what: "TLS client cert", missing: "Using TLS requires clientCert" },
  { field: "clientKey", what: "TLS client key", missing: "Using TLS requires requires clientKey" },
] as const satisfies readonly { field: keyof TlsConfig; what: string; missing?: string }[];

function tlsErrors(tls: TlsConfig | undefined): FieldError[] {
  const at = `${path}.tlsConfig`;
  if (tls === undefined) return [required(at, "TLSConfig must be present when using HTTPS")];
  return tlsFiles.flatMap(({ field, what, ...rest }) => {
    const file = tls[field] ?? "";
    if (file !== "") return existsSync(file) ? [] : [invalidValue(`${at}.${field}`, file, `${what} does not exist`)];
    return "missing" in rest ? [invalidValue(`${at}.${field}`, "nil", rest.missing)] : [];
  });
}
