import { resolve } from "node:path";
import { decodeShape } from "@coxswain/apimachinery/flags/config-shape";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { Written } from "./agent-config.ts";
import { kubeletConfiguration } from "./kubelet-configuration.ts";

/** Fields that are not implemented, with the value that matches the actual behaviour; other values are logged as ineffective. */
const unreadFields: Readonly<Record<string, unknown>> = {
  configMapAndSecretChangeDetectionStrategy: "Get",
  enableContentionProfiling: false,
  enableDebugFlagsHandler: undefined,
  enableProfilingHandler: undefined,
  kernelMemcgNotification: false,
  logging: undefined,
  streamingConnectionIdleTimeout: undefined,
};

/**
 * Paths of fields that are not in KubeletConfiguration, for a warning at start: they may belong to another release.
 * @throws DecodeError for a value of the wrong type
 * Source: pkg/kubelet/kubeletconfig/util/codec/codec.go DecodeKubeletConfiguration
 */
export function unknownFields(file: Written): string[] {
  const unknown: string[] = [];
  decodeShape(file, kubeletConfiguration, unknown);
  return unknown;
}

/** Fields that were set but have no effect, for a warning at start. */
export function ineffectiveFields(file: Written): string[] {
  return Object.keys(file).filter((name) => Object.hasOwn(unreadFields, name) && file[name] !== unreadFields[name]);
}

/** Source: pkg/kubelet/apis/config/helpers.go KubeletConfigurationPathRefs */
const pathFields = [
  "staticPodPath",
  "authentication.x509.clientCAFile",
  "tlsCertFile",
  "tlsPrivateKeyFile",
  "resolvConf",
  "volumePluginDir",
];

/** Resolves relative paths in the file against `folder`. */
export function absolutePaths(file: Written, folder: string): Written {
  return pathFields.reduce((fields, path) => withAbsolute(fields, path.split("."), folder), file);
}

function withAbsolute(fields: Written, [first = "", ...rest]: readonly string[], folder: string): Written {
  const value = Object.hasOwn(fields, first) ? fields[first] : undefined;
  if (rest.length > 0) return isJsonObject(value) ? { ...fields, [first]: withAbsolute(value, rest, folder) } : fields;
  return typeof value === "string" && value !== "" ? { ...fields, [first]: resolve(folder, value) } : fields;
}
