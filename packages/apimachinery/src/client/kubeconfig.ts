import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { parseYaml } from "../codec/yaml.ts";
import type { ClientConfig, ExecConfig, Impersonation } from "./config.ts";

/**
 * Reads a kubeconfig file and gives what its current context says. Relative paths in it are relative to the file.
 * @param options.master the server's address, whatever the file says (`--master`)
 * @throws Error that names the file, when it cannot be read, is no kubeconfig, or names what it does not define
 * Source: k8s.io/client-go tools/clientcmd
 */
export async function loadKubeconfig(path: string, options: { context?: string; master?: string } = {}): Promise<ClientConfig> {
  try {
    return parseKubeconfig(await readFile(path, "utf8"), { ...options, directory: dirname(path) });
  } catch (err) {
    throw new Error(`cannot load kubeconfig ${path}`, { cause: err });
  }
}

/** Like `loadKubeconfig` for text that is already there. */
export function parseKubeconfig(
  text: string,
  options: { context?: string; master?: string; directory?: string } = {},
): ClientConfig {
  const file = (parseYaml(text) ?? {}) as KubeconfigFile;
  if (typeof file !== "object" || Array.isArray(file)) throw new Error("not a kubeconfig: the document is not a map");
  const contextName = options.context ?? file["current-context"] ?? "";
  const context = named(file.contexts, contextName)?.context;
  if (context === undefined && (contextName !== "" || options.master === undefined)) {
    throw new Error(contextName === "" ? "no current-context is set" : `context ${JSON.stringify(contextName)} does not exist`);
  }
  const cluster = named(file.clusters, context?.cluster ?? "")?.cluster;
  if (cluster === undefined && options.master === undefined) {
    throw new Error(`cluster ${JSON.stringify(context?.cluster ?? "")} does not exist`);
  }
  const user = named(file.users, context?.user ?? "")?.user;
  if (user === undefined && context?.user) throw new Error(`user ${JSON.stringify(context.user)} does not exist`);

  const host = options.master ? options.master : (cluster?.server ?? "");
  if (host === "") throw new Error(`cluster ${JSON.stringify(context?.cluster ?? "")} has no server defined`);
  const inFolder = (name: string | undefined): string | undefined =>
    name === undefined || name === "" || isAbsolute(name) ? name : join(options.directory ?? ".", name);

  return withoutUndefined({
    host: host.includes("://") ? host : `http://${host}`,
    ca: fromBase64(cluster?.["certificate-authority-data"]),
    caFile: inFolder(cluster?.["certificate-authority"]),
    insecure: cluster?.["insecure-skip-tls-verify"],
    serverName: cluster?.["tls-server-name"],
    cert: fromBase64(user?.["client-certificate-data"]),
    certFile: inFolder(user?.["client-certificate"]),
    key: fromBase64(user?.["client-key-data"]),
    keyFile: inFolder(user?.["client-key"]),
    token: user?.token,
    tokenFile: inFolder(user?.tokenFile),
    username: user?.username,
    password: user?.password,
    exec: execOf(user?.exec, options.directory),
    impersonate: impersonationOf(user),
  });
}

interface KubeconfigFile {
  "current-context"?: string;
  clusters?: { name: string; cluster?: KubeconfigCluster }[];
  contexts?: { name: string; context?: { cluster?: string; user?: string; namespace?: string } }[];
  users?: { name: string; user?: KubeconfigUser }[];
}

interface KubeconfigCluster {
  server?: string;
  "tls-server-name"?: string;
  "insecure-skip-tls-verify"?: boolean;
  "certificate-authority"?: string;
  "certificate-authority-data"?: string;
}

interface KubeconfigUser {
  "client-certificate"?: string;
  "client-certificate-data"?: string;
  "client-key"?: string;
  "client-key-data"?: string;
  token?: string;
  tokenFile?: string;
  username?: string;
  password?: string;
  exec?: KubeconfigExec;
  as?: string;
  "as-uid"?: string;
  "as-groups"?: string[];
  "as-user-extra"?: Record<string, string[]>;
}

interface KubeconfigExec {
  apiVersion?: string;
  command?: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  installHint?: string;
  provideClusterInfo?: boolean;
}

function named<T extends { name: string }>(entries: readonly T[] | null | undefined, name: string): T | undefined {
  return entries?.find((entry) => entry.name === name);
}

function fromBase64(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : Buffer.from(text, "base64").toString("utf8");
}

const execVersions = ["v1", "v1beta1", "v1alpha1"].map((version) => `client.authentication.k8s.io/${version}`);

function execOf(exec: KubeconfigExec | undefined, directory: string | undefined): ExecConfig | undefined {
  if (exec === undefined) return undefined;
  if (!exec.command) throw new Error("command must be specified to use exec authentication plugin");
  if (!exec.apiVersion) throw new Error("apiVersion must be specified to use exec authentication plugin");
  if (!execVersions.includes(exec.apiVersion))
    throw new Error(`exec plugin: invalid apiVersion ${JSON.stringify(exec.apiVersion)}`);
  const relative = exec.command.includes("/") && !isAbsolute(exec.command);
  return withoutUndefined({
    apiVersion: exec.apiVersion,
    command: relative ? join(directory ?? ".", exec.command) : exec.command,
    args: exec.args ?? undefined,
    env: exec.env ?? undefined,
    installHint: exec.installHint,
    provideClusterInfo: exec.provideClusterInfo,
  }) as ExecConfig;
}

function impersonationOf(user: KubeconfigUser | undefined): Impersonation | undefined {
  if (!user?.as) return undefined;
  return withoutUndefined({
    user: user.as,
    uid: user["as-uid"],
    groups: user["as-groups"],
    extra: user["as-user-extra"],
  }) as Impersonation;
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}
