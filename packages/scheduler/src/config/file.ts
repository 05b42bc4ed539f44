import { readFileSync } from "node:fs";
import type { ObjectShape } from "@coxswain/apimachinery/flags/config-shape";
import { DecodeError, decodeShape } from "@coxswain/apimachinery/flags/config-shape";
import type { Written } from "@coxswain/apimachinery/flags/settings";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { argsShapes } from "./argument-rows.ts";
import type { ConfigVersion, PluginPoint } from "./plugin-sets.ts";
import { configurationShapes } from "./shapes.ts";

/** The decoded configuration file, without defaults; durations in ms. Fields other than these have rows in settings.ts. */
export interface WrittenConfig extends Written {
  readonly version: ConfigVersion;
  readonly profiles?: readonly WrittenProfile[];
  readonly extenders?: readonly ExtenderConfig[];
}

export interface WrittenProfile {
  readonly schedulerName?: string;
  readonly plugins?: Partial<Record<PluginPoint, WrittenPluginSet>>;
  readonly pluginConfig?: readonly { readonly name?: string; readonly args?: unknown }[];
}

interface WrittenPluginSet {
  readonly enabled?: readonly { readonly name?: string; readonly weight?: number }[];
  readonly disabled?: readonly { readonly name?: string }[];
}

export interface ExtenderConfig {
  readonly urlPrefix?: string;
  readonly filterVerb?: string;
  readonly preemptVerb?: string;
  readonly prioritizeVerb?: string;
  readonly weight?: number;
  readonly bindVerb?: string;
  readonly enableHTTPS?: boolean;
  readonly tlsConfig?: {
    readonly insecure?: boolean;
    readonly serverName?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly caFile?: string;
    readonly certData?: string;
    readonly keyData?: string;
    readonly caData?: string;
  };
  readonly httpTimeout?: number;
  readonly nodeCacheCapable?: boolean;
  readonly managedResources?: readonly { readonly name?: string; readonly ignoredByScheduler?: boolean }[];
  readonly ignorable?: boolean;
}

const group = "kubescheduler.config.k8s.io";

/**
 * Reads and strictly decodes a KubeSchedulerConfiguration.
 * @throws Error for an unreadable file, another kind or version, and unknown fields
 * Source: cmd/kube-scheduler/app/options/configfile.go; strict decoding since v1beta1
 */
export function readSchedulerConfig(path: string): WrittenConfig {
  const parsed = parseYaml(readFileSync(path, "utf8"));
  const { apiVersion, kind }: { apiVersion?: unknown; kind?: unknown } = parsed ?? {};
  const version = String(apiVersion).startsWith(`${group}/`) ? String(apiVersion).slice(group.length + 1) : "";
  if (kind !== "KubeSchedulerConfiguration" || !isKeyOf(configurationShapes, version))
    throw notRegistered(kind ?? "", apiVersion ?? "");
  const decoded = strictly(parsed, configurationShapes[version]);
  return { ...decoded, version };
}

/**
 * Decodes a plugin's arguments.
 * @param place indexes of the profile and of the entry in its `pluginConfig`, for error texts
 * @returns undefined for a plugin without arguments
 * @throws Error for arguments of another kind or version, and for unknown fields
 * Source: k8s.io/kube-scheduler/config/v1beta3 decodeNestedObjects; pkg/scheduler/apis/config/v1beta3/conversion.go
 */
export function decodeArgs(
  name: string,
  args: unknown,
  version: ConfigVersion,
  place: readonly [profile: number, entry: number],
): object | undefined {
  if (!Object.hasOwn(argsShapes, name)) return undefined;
  const [profile, entry] = place;
  let decoded: ReturnType<typeof decodeTyped>;
  try {
    decoded = decodeTyped(name, args, version);
  } catch (err) {
    throw new Error(`decoding .profiles[${profile}].pluginConfig[${entry}]: ${messageOf(err)}`, { cause: err });
  }
  if (decoded.version === version) return decoded.own;
  // Arguments of the other version decode, but what converts them knows only the version of the file.
  throw new Error(
    `converting .Profiles[${profile}].PluginConfig[${entry}].Args into internal type: no kind is registered for the type ${decoded.version}.${name}Args in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/${version}/conversion.go:41"`,
  );
}

/** Decodes arguments as the kind and version that they name; without these, as those of the plugin and of the file. */
function decodeTyped(name: string, args: unknown, version: ConfigVersion): { version: string; own: object } {
  const wanted = `${name}Args`;
  const { kind, apiVersion }: { kind?: unknown; apiVersion?: unknown } = args ?? {};
  const actual = String(kind || wanted);
  const ofArgs = String(apiVersion || `${group}/${version}`);
  const argsVersion = ofArgs.startsWith(`${group}/`) ? ofArgs.slice(group.length + 1) : "";
  const plugin = actual.replace(/Args$/, "");
  const shape = actual.endsWith("Args") && Object.hasOwn(argsShapes, plugin) ? argsShapes[plugin] : undefined;
  try {
    if (shape === undefined || !isKeyOf(configurationShapes, argsVersion)) throw notRegistered(actual, ofArgs);
    const { apiVersion: _, kind: __, ...own } = strictly(args ?? {}, shape);
    if (actual === wanted) return { version: argsVersion, own };
  } catch (err) {
    throw new Error(`decoding args for plugin ${name}: ${messageOf(err)}`, { cause: err });
  }
  throw new Error(`args for plugin ${name} were not of type ${wanted}.${group}, got ${actual}.${group}`);
}

const notRegistered = (kind: unknown, apiVersion: unknown): Error =>
  new Error(
    `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme/scheme.go:30"`,
  );

function strictly(value: unknown, shape: ObjectShape): Record<string, unknown> {
  const unknown: string[] = [];
  let decoded: unknown;
  try {
    decoded = decodeShape(value, shape, unknown);
  } catch (err) {
    throw err instanceof DecodeError ? new Error(err.message, { cause: err }) : err;
  }
  if (unknown.length > 0)
    throw new Error(`strict decoding error: ${unknown.map((path) => `unknown field ${JSON.stringify(path)}`).join(", ")}`);
  return isJsonObject(decoded) ? decoded : {};
}
