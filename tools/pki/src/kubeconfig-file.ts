import { dirname, isAbsolute, join } from "node:path";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import type { KeyPair } from "@coxswain/apimachinery/serving/certificates";
import type { KubeconfigSpec } from "./plan.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const fromBase64 = (text: string): string => Buffer.from(text, "base64").toString();

/** Written as JSON, which is valid YAML and unambiguous for all parsers. */
export function newKubeconfig({ server, commonName: user }: KubeconfigSpec, caPem: string, pair: KeyPair): string {
  const context = `${user}@kubernetes`;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "kubernetes", cluster: { server, "certificate-authority-data": base64(caPem) } }],
    users: [{ name: user, user: { "client-certificate-data": base64(pair.certPem), "client-key-data": base64(pair.keyPem) } }],
    contexts: [{ name: context, context: { cluster: "kubernetes", user } }],
    "current-context": context,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** Certificates and servers in a kubeconfig. */
interface KubeconfigContent {
  readonly servers: readonly string[];
  readonly users: readonly KubeconfigCertificate[];
  /** Embedded CA certificates, PEM. */
  readonly authorities: readonly string[];
}

/** A user's client certificate, embedded or in a referenced file. */
interface KubeconfigCertificate {
  readonly user: string;
  readonly certPem?: string;
  readonly keyPem?: string;
  readonly file?: string;
}

interface Parsed {
  clusters?: { cluster?: { server?: string; "certificate-authority-data"?: string } }[];
  users?: { name?: string; user?: Record<string, unknown> }[];
}

/** @throws Error when the text is not a kubeconfig */
export function readKubeconfig(text: string, path: string): KubeconfigContent {
  const parsed = parseYaml(text) as Parsed | null; // cast: every field is optional and checked
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error("it is not a kubeconfig");
  const string = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
  const clusters = (parsed.clusters ?? []).map(({ cluster }) => cluster ?? {});
  return {
    servers: clusters.flatMap(({ server }) => server ?? []),
    authorities: clusters.flatMap((cluster) => string(cluster["certificate-authority-data"]) ?? []).map(fromBase64),
    users: (parsed.users ?? []).flatMap(({ name = "", user = {} }): KubeconfigCertificate[] => {
      const data = string(user["client-certificate-data"]);
      const key = string(user["client-key-data"]);
      if (data !== undefined)
        return [{ user: name, certPem: fromBase64(data), ...(key !== undefined && { keyPem: fromBase64(key) }) }];
      const file = string(user["client-certificate"]);
      return file === undefined ? [] : [{ user: name, file: isAbsolute(file) ? file : join(dirname(path), file) }];
    }),
  };
}

/**
 * Replaces an embedded certificate textually, preserving the rest of the file.
 * @returns undefined when the encoded certificate is not found on a single line
 */
export function withCertificate(text: string, oldPem: string, newPem: string): string | undefined {
  const old = base64(oldPem);
  return text.includes(old) ? text.replaceAll(old, base64(newPem)) : undefined;
}

/** The same for the authorities that the kubeconfig trusts: whole values only, because one may be the beginning of another. */
export function withAuthority(text: string, oldPem: string, newPem: string): string | undefined {
  const value = new RegExp(`(?<![A-Za-z0-9+/=])${base64(oldPem).replaceAll("+", "\\+")}(?![A-Za-z0-9+/=])`, "g");
  return text.search(value) >= 0 ? text.replaceAll(value, base64(newPem)) : undefined;
}
