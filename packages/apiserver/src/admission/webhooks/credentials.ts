/**
 * Client credentials for webhooks: the users of the kubeconfig named in the plugin's configuration, where each user's name
 * is a pattern of the servers it is for.
 * Source: k8s.io/apiserver pkg/util/webhook/authentication.go, pkg/admission/plugin/webhook/config/kubeconfig.go
 */
import { readFileSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { formatFieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";

/** Credentials of one request; empty for webhooks that match no user. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Client certificate and key, PEM. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

/** @param hostPort `hooks.example.com:443`, `name.namespace.svc:443`. Called for each request, so that files can be rotated. */
export type CredentialsFor = (hostPort: string) => Credentials;

interface Users {
  readonly users?: readonly { readonly name: string; readonly user?: unknown }[];
  readonly contexts?: readonly { readonly name: string; readonly context?: { readonly user?: string } }[];
  readonly "current-context"?: string;
}

/**
 * @param configuration `{kubeConfigFile}` or undefined
 * @param proxyCertificate from --proxy-client-cert-file; used for webhooks that match no user
 * @throws Error when the file is invalid.
 */
export function webhookCredentials(
  configuration: unknown,
  proxyCertificate: { readonly current: Credentials["certificate"] | undefined },
): CredentialsFor {
  const nobody = (): Credentials => {
    const { current: certificate } = proxyCertificate;
    return { headers: {}, ...(certificate && { certificate }) };
  };
  const { kubeConfigFile: path = "" }: { kubeConfigFile?: string } = configuration ?? {};
  if (path === "") return nobody;
  if (!isAbsolute(path)) {
    throw new Error(formatFieldError(invalidValue("kubeConfigFile", path, "must be an absolute file path")));
  }
  const file: Users = parseYaml(readFileSync(path, "utf8")) ?? {};
  const configs = new Map((file.users ?? []).map(({ name, user }) => [name, configOf(user, dirname(path))]));
  const current = file.contexts?.find(({ name }) => name === file["current-context"])?.context?.user;
  return (hostPort) => {
    const found = namesFor(hostPort).find((name) => configs.has(name)) ?? current ?? "";
    const config = configs.get(found);
    return config === undefined ? nobody() : credentialsOf(config);
  };
}

/** Lookup order, from most to least specific: `a.b:443`, `*.b:443`, `a.b`, `*.b`, `*`. */
function namesFor(hostPort: string): string[] {
  const withDomains = (target: string): string[] => {
    const steps = target.split(".");
    return [target, ...steps.slice(1).map((_step, i) => `*.${steps.slice(i + 1).join(".")}`)];
  };
  const bare = hostPort.endsWith(":443") ? withDomains(hostPort.slice(0, -":443".length)) : [];
  return [...withDomains(hostPort), ...bare, "*"];
}

/** Wraps one user in a kubeconfig document, to reuse the kubeconfig parser. */
function configOf(user: unknown, directory: string): ClientConfig {
  const document = {
    clusters: [{ name: "webhook", cluster: { server: "https://webhook" } }],
    contexts: [{ name: "webhook", context: { cluster: "webhook", user: "webhook" } }],
    users: [{ name: "webhook", user: user ?? {} }],
    "current-context": "webhook",
  };
  const config = parseKubeconfig(JSON.stringify(document), { directory });
  if (config.exec !== undefined) throw new Error("kubeConfigFile: exec plugins are not supported for webhooks");
  return config;
}

function credentialsOf(config: ClientConfig): Credentials {
  const text = (pem: string | undefined, path: string | undefined): string | undefined =>
    pem ?? (path === undefined ? undefined : readFileSync(path, "utf8"));
  const [cert, key] = [text(config.cert, config.certFile), text(config.key, config.keyFile)];
  const token = config.tokenFile === undefined ? config.token : readFileSync(config.tokenFile, "utf8").trim();
  const headers: Record<string, string | string[]> = {};
  if (token) headers["authorization"] = `Bearer ${token}`;
  else if (config.username !== undefined) {
    headers["authorization"] = `Basic ${Buffer.from(`${config.username}:${config.password ?? ""}`).toString("base64")}`;
  }
  if (config.impersonate !== undefined) {
    headers["impersonate-user"] = config.impersonate.user;
    if (config.impersonate.groups !== undefined) headers["impersonate-group"] = [...config.impersonate.groups];
  }
  return cert === undefined || key === undefined ? { headers } : { headers, certificate: { cert, key } };
}
