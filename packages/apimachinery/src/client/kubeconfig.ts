import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { parseYaml } from "../objects/codec/yaml.ts";
import { messageOf } from "../objects/errors/message.ts";
import type { ClientConfig, ExecConfig, Impersonation } from "./config.ts";
import { parseProxyUrl } from "./proxy.ts";

/**
 * Loads the current context of a kubeconfig file. Relative paths are resolved against the file's directory.
 * @param options.master overrides the server address (`--master`)
 * @throws Error that names the file, when it is unreadable, invalid or refers to undefined entries
 * Source: k8s.io/client-go tools/clientcmd
 */
export async function loadKubeconfig(path: string, options: { context?: string; master?: string } = {}): Promise<ClientConfig> {
  try {
    const config = parseKubeconfig(await readFile(path, "utf8"), { ...options, directory: dirname(path) });
    return { ...config, kubeconfigFile: path, ...(options.context !== undefined && { kubeconfigContext: options.context }) };
  } catch (err) {
    throw new Error(`cannot load kubeconfig ${path}`, { cause: err });
  }
}

/**
 * Replaces certificates, key and authorities that were read from the kubeconfig file by the file's current ones.
 * Server and user do not change, nor do credentials of this configuration from other sources.
 * @returns `config` itself when it has none of them, or when the file cannot be read at the moment
 */
export async function withCurrentPem(config: ClientConfig): Promise<ClientConfig> {
  const { kubeconfigFile, kubeconfigContext, ca, cert } = config;
  if (kubeconfigFile === undefined || (!ca && !cert)) return config;
  try {
    const text = await readFile(kubeconfigFile, "utf8");
    const now = parseKubeconfig(text, {
      ...(kubeconfigContext !== undefined && { context: kubeconfigContext }),
      master: config.host,
    });
    const hasPair = Boolean(cert && now.cert && now.key);
    return { ...config, ...(ca && now.ca && { ca: now.ca }), ...(hasPair && { cert: now.cert, key: now.key }) };
  } catch {
    return config;
  }
}

/** Same as `loadKubeconfig`, for text. */
export function parseKubeconfig(
  text: string,
  options: { context?: string; master?: string; directory?: string } = {},
): ClientConfig {
  const file = kubeconfigOf(parseYaml(text) ?? {});
  const contextName = options.context ?? file["current-context"] ?? "";
  const context = partOf(named(file.contexts, contextName), "context");
  if (context === undefined && (contextName !== "" || options.master === undefined)) {
    throw new Error(contextName === "" ? "no current-context is set" : `context ${JSON.stringify(contextName)} does not exist`);
  }
  const cluster = partOf(named(file.clusters, context?.cluster ?? ""), "cluster");
  if (cluster === undefined && options.master === undefined) {
    throw new Error(`cluster ${JSON.stringify(context?.cluster ?? "")} does not exist`);
  }
  const user = partOf(named(file.users, context?.user ?? ""), "user");
  // Upstream continues without credentials, and every request is refused.
  if (user === undefined && context?.user) throw new Error(`user ${JSON.stringify(context.user)} does not exist`);
  const problem = clusterProblem(context?.cluster ?? "", cluster) ?? userProblem(context?.user ?? "", user);
  if (problem !== undefined) throw new Error(`invalid configuration: ${problem}`);
  if (cluster?.["insecure-skip-tls-verify"] && (cluster["certificate-authority"] || cluster["certificate-authority-data"]))
    throw new Error("specifying a root certificates file with the insecure flag is not allowed");

  const host = options.master ? options.master : (cluster?.server ?? "");
  if (host === "") throw new Error(`cluster ${JSON.stringify(context?.cluster ?? "")} has no server defined`);
  const inFolder = (name: string | undefined): string | undefined =>
    name === undefined || name === "" || isAbsolute(name) ? name : join(options.directory ?? ".", name);

  return withoutUndefined({
    host: host.includes("://") ? host : `http://${host}`,
    ca: fromBase64(cluster, "certificate-authority-data"),
    caFile: inFolder(cluster?.["certificate-authority"]),
    insecure: cluster?.["insecure-skip-tls-verify"],
    serverName: cluster?.["tls-server-name"],
    proxyUrl: cluster?.["proxy-url"] || undefined,
    cert: fromBase64(user, "client-certificate-data"),
    certFile: inFolder(user?.["client-certificate"]),
    key: fromBase64(user, "client-key-data"),
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
  "proxy-url"?: string;
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
  "auth-provider"?: { name?: string };
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
  interactiveMode?: string;
}

/** Conflicting settings are rejected instead of choosing one. Source: tools/clientcmd/validation.go */
function clusterProblem(name: string, cluster: KubeconfigCluster = {}): string | undefined {
  const { "certificate-authority": file, "certificate-authority-data": data } = cluster;
  if (file && data)
    return `certificate-authority-data and certificate-authority are both specified for ${name}. certificate-authority-data will override.`;
  const { "proxy-url": proxy } = cluster;
  if (!proxy) return undefined;
  try {
    parseProxyUrl(proxy);
    return undefined;
  } catch (err) {
    return `invalid 'proxy-url' ${JSON.stringify(proxy)} for cluster ${JSON.stringify(name)}: ${messageOf(err)}`;
  }
}

function userProblem(name: string, user: KubeconfigUser = {}): string | undefined {
  const { "client-certificate": cert, "client-certificate-data": certData, "client-key": key, "client-key-data": keyData } = user;
  if (cert && certData) return `client-cert-data and client-cert are both specified for ${name}. client-cert-data will override.`;
  if ((cert || certData) && key && keyData)
    return `client-key-data and client-key are both specified for ${name}; client-key-data will override`;
  if ((cert || certData) && !key && !keyData)
    return `client-key-data or client-key must be specified for ${name} to use the clientCert authentication method.`;
  const methods = [...(user.token ? ["token"] : []), ...(user.username || user.password ? ["basicAuth"] : [])];
  if (methods.length > 1)
    return `more than one authentication method found for ${name}; found [${methods.join(" ")}], only one is allowed`;
  const alsoAs = [user["as-uid"], user["as-groups"]?.length, Object.keys(user["as-user-extra"] ?? {}).length];
  if (!user.as && alsoAs.some(Boolean)) return `requesting uid, groups or user-extra for ${name} without impersonating a user`;
  const { "auth-provider": provider, exec } = user;
  if (provider && exec) return `authProvider cannot be provided in combination with an exec plugin for ${name}`;
  // Upstream's daemons are built without auth provider plugins, too.
  if (provider) return `no Auth Provider found for name ${JSON.stringify(provider.name ?? "")}`;
  return user.exec === undefined ? undefined : execProblem(name, user.exec);
}

const interactiveModes = ["Never", "IfAvailable", "Always"];

function execProblem(name: string, { command, apiVersion, env, interactiveMode }: KubeconfigExec): string | undefined {
  const missing = (what: string): string => `${what} must be specified for ${name} to use exec authentication plugin`;
  if (!command) return missing("command");
  if (!apiVersion) return missing("apiVersion");
  if (env?.some((variable) => !variable.name)) return missing("env variable name");
  // `interactiveMode` is required from v1 on.
  if (!interactiveMode) return apiVersion === execVersions[0] ? missing("interactiveMode") : undefined;
  return interactiveModes.includes(interactiveMode)
    ? undefined
    : `invalid interactiveMode for ${name}: ${JSON.stringify(interactiveMode)}`;
}

/** The kind of a value, and of what is in it. */
type Shape = "text" | "boolean" | readonly [Shape] | { readonly [field: string]: Shape } | { readonly "*": Shape };

const shape = {
  "current-context": "text",
  clusters: [
    {
      name: "text",
      cluster: {
        server: "text",
        "tls-server-name": "text",
        "insecure-skip-tls-verify": "boolean",
        "proxy-url": "text",
        "certificate-authority": "text",
        "certificate-authority-data": "text",
      },
    },
  ],
  contexts: [{ name: "text", context: { cluster: "text", user: "text", namespace: "text" } }],
  users: [
    {
      name: "text",
      user: {
        "client-certificate": "text",
        "client-certificate-data": "text",
        "client-key": "text",
        "client-key-data": "text",
        token: "text",
        tokenFile: "text",
        username: "text",
        password: "text",
        exec: {
          apiVersion: "text",
          command: "text",
          args: ["text"],
          env: [{ name: "text", value: "text" }],
          installHint: "text",
          provideClusterInfo: "boolean",
          interactiveMode: "text",
        },
        "auth-provider": { name: "text" },
        as: "text",
        "as-uid": "text",
        "as-groups": ["text"],
        "as-user-extra": { "*": ["text"] },
      },
    },
  ],
} as const satisfies Shape;

/** The document without nulls, which count as absent. @throws Error that names the field of another kind */
function kubeconfigOf(document: unknown): KubeconfigFile {
  // Cast: the shape has the fields of the type, and `ofShape` checks them.
  return ofShape(document, shape, "the document") as KubeconfigFile;
}

function ofShape(value: unknown, wanted: Shape, path: string): unknown {
  const refuse = (kind: string): never => {
    throw new Error(`not a kubeconfig: ${path} is not a ${kind}`);
  };
  if (wanted === "text") return typeof value === "string" ? value : refuse("string");
  if (wanted === "boolean") return typeof value === "boolean" ? value : refuse("boolean");
  if (Array.isArray(wanted)) {
    if (!Array.isArray(value)) return refuse("list");
    const entries = value.map((entry, i) => [entry, i] as const).filter(([entry]) => entry !== null && entry !== undefined);
    // Cast: `isArray` does not narrow readonly lists.
    return entries.map(([entry, i]) => ofShape(entry, wanted[0] as Shape, `${path}[${i}]`));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refuse("map");
  const fields = wanted as Readonly<Record<string, Shape>>; // cast: a shape that is neither the name of a type nor a list is a map of shapes
  const known = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    const inside = fields["*"] ?? (Object.hasOwn(fields, name) ? fields[name] : undefined);
    if (inside === undefined || field === null || field === undefined) return [];
    return [[name, ofShape(field, inside, path === "the document" ? name : `${path}.${name}`)]];
  });
  return Object.fromEntries(known);
}

function named<T extends { name: string }>(entries: readonly T[] | undefined, name: string): T | undefined {
  return entries?.find((entry) => (entry.name ?? "") === name);
}

/** An entry without content counts as an empty one: a user without credentials. */
function partOf<Part extends string, T extends { [part in Part]?: object }>(
  entry: T | undefined,
  part: Part,
): NonNullable<T[Part]> | undefined {
  return entry && ((entry[part] ?? {}) as NonNullable<T[Part]>); // cast: all fields of a part are optional
}

function fromBase64<Field extends string>(
  part: { readonly [F in Field]?: string } | undefined,
  field: Field,
): string | undefined {
  const data = part?.[field]?.replace(/[\r\n]/g, "") ?? "";
  if (data === "") return undefined;
  // Buffer.from skips characters that are not base64, where Go fails.
  if (data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) throw new Error(`illegal base64 data in ${field}`);
  return Buffer.from(data, "base64").toString("utf8");
}

const execVersions = ["v1", "v1beta1", "v1alpha1"].map((version) => `client.authentication.k8s.io/${version}`);

function execOf(exec: KubeconfigExec | undefined, directory: string | undefined): ExecConfig | undefined {
  if (exec === undefined) return undefined;
  const { apiVersion = "", command = "" } = exec;
  if (!execVersions.includes(apiVersion)) throw new Error(`exec plugin: invalid apiVersion ${JSON.stringify(apiVersion)}`);
  // A daemon has no terminal.
  if (exec.interactiveMode === "Always")
    throw new Error("exec plugin cannot support interactive mode: standard input is not a terminal");
  const relative = command.includes("/") && !isAbsolute(command);
  return withoutUndefined({
    apiVersion,
    command: relative ? join(directory ?? ".", command) : command,
    args: exec.args ?? undefined,
    env: exec.env ?? undefined,
    installHint: exec.installHint,
    provideClusterInfo: exec.provideClusterInfo,
  });
}

function impersonationOf(user: KubeconfigUser | undefined): Impersonation | undefined {
  if (!user?.as) return undefined;
  return withoutUndefined({
    user: user.as,
    uid: user["as-uid"],
    groups: user["as-groups"],
    extra: user["as-user-extra"],
  });
}

function withoutUndefined<T extends object>(value: T): T {
  // Cast: only members with the value undefined are left out.
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}
