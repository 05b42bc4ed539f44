/**
 * --egress-selector-config-file: proxies for outgoing connections by destination. `cluster`: kubelets, pods, services,
 * webhooks and aggregated servers behind services; `controlplane`: webhooks with a URL or named in files of this server;
 * `etcd`: etcd.
 * Source: k8s.io/apiserver pkg/server/egressselector/config.go, pkg/server/options/egress_selector.go
 */

import { existsSync, readFileSync } from "node:fs";
import { DecodeFailure } from "@coxswain/apimachinery/objects/codec/json-decode";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject, jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import { type ProxyServer, proxyServerOf } from "./proxy-server.ts";
import type { EgressSelection, SelectionName } from "./selections.ts";
import { egressErrors } from "./validation.ts";

/** Destinations without an entry are connected directly. */
export type ProxyServers = Partial<Record<SelectionName, ProxyServer>>;

/**
 * @param path "" when the flag is not set
 * @throws Error describing the first problem
 */
export function readEgressConfiguration(path: string): ProxyServers {
  if (path === "") return {};
  if (!existsSync(path)) throw new Error(`egress-selector-config-file ${path} does not exist`);
  const selections = orSay("failed to read egress selector config", () => readSelections(path));
  const errors = egressErrors(selections);
  if (errors.length > 0) throw new Error(`failed to validate egress selector configuration: ${formatFieldErrors(errors)}`);
  const proxies: ProxyServers = {};
  for (const { name = "", connection = {} } of selections) {
    if (connection.proxyProtocol === "Direct") continue;
    const selection = name.toLowerCase() as SelectionName; // cast: `egressErrors` has refused other names
    const what = `failed to setup egress selector: failed to create dialer for egressSelection "${selection}"`;
    proxies[selection] = orSay(what, () => proxyServerOf(connection));
  }
  return proxies;
}

function orSay<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (err) {
    throw new Error(`${what}: ${messageOf(err)}`, { cause: err });
  }
}

/** All apiVersions are read as v1beta1. */
function readSelections(path: string): readonly EgressSelection[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (err) {
    throw new Error(`unable to read egress selector configuration from "${path}" [${messageOf(err)}]`);
  }
  const value = parseYaml(text);
  const { kind = "", egressSelections = [] } = orSay(
    "error unmarshaling JSON: while decoding JSON",
    // Cast: the decoder has checked the shape.
    () => (decoded(value, configuration) ?? {}) as { kind?: string; egressSelections?: EgressSelection[] },
  );
  if (kind !== "EgressSelectorConfiguration") throw new Error(`invalid service configuration object ${JSON.stringify(kind)}`);
  return egressSelections;
}

/** Go type to decode into; a tuple denotes a list of that type. */
type GoType = "string" | readonly [GoStruct] | GoStruct;

interface GoStruct {
  readonly goName: string;
  readonly fields: Readonly<Record<string, GoType>>;
}

const uds: GoStruct = { goName: "UDSTransport", fields: { udsName: "string" } };
const tls: GoStruct = { goName: "TLSConfig", fields: { caBundle: "string", clientKey: "string", clientCert: "string" } };
const tcp: GoStruct = { goName: "TCPTransport", fields: { url: "string", tlsConfig: tls } };
const transport: GoStruct = { goName: "Transport", fields: { tcp, uds } };
const connection: GoStruct = { goName: "Connection", fields: { proxyProtocol: "string", transport } };
const selection: GoStruct = { goName: "EgressSelection", fields: { name: "string", connection } };
const configuration: GoStruct = {
  goName: "EgressSelectorConfiguration",
  fields: { apiVersion: "string", kind: "string", egressSelections: [selection] },
};

/** Decodes like Go's JSON decoder: field names are case-insensitive, unknown fields are ignored. @throws DecodeFailure */
function decoded(value: unknown, type: GoType): unknown {
  if (value === null || value === undefined) return undefined;
  if (type === "string") {
    if (typeof value === "object") throw new DecodeFailure(jsonWord(value), "string");
    return String(value); // YAML numbers and booleans are accepted as strings
  }
  if (isList(type)) {
    const [element] = type;
    if (!Array.isArray(value)) throw new DecodeFailure(jsonWord(value), `[]v1beta1.${element.goName}`);
    return value.map((item) => decoded(item, element) ?? {});
  }
  if (!isJsonObject(value)) throw new DecodeFailure(jsonWord(value), `v1beta1.${type.goName}`);
  const found: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const field = Object.keys(type.fields).find((known) => known.toLowerCase() === key.toLowerCase());
    if (field === undefined) continue;
    try {
      found[field] = decoded(inner, type.fields[field]!);
    } catch (err) {
      if (err instanceof DecodeFailure) err.within(type.goName, field);
      throw err;
    }
  }
  return found;
}

function isList(type: GoType): type is readonly [GoStruct] {
  return Array.isArray(type);
}
