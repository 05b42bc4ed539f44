import { resolve } from "node:path";
import { decodeShape } from "@coxswain/apimachinery/flags/config-shape";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { Written } from "./config.ts";
import { kubeletConfiguration } from "./kubelet-configuration.ts";

/** Fields that nothing reads, with the value that says what happens here anyway: of any other value it is told that it does nothing. */
const unreadFields: Readonly<Record<string, unknown>> = {
  configMapAndSecretChangeDetectionStrategy: "Get",
  enableContentionProfiling: false,
  enableDebugFlagsHandler: undefined,
  enableProfilingHandler: undefined,
  enableSystemLogHandler: false,
  kernelMemcgNotification: false,
  logging: undefined,
  streamingConnectionIdleTimeout: undefined,
};

/**
 * Paths of fields that no KubeletConfiguration has, for the log at start: they may be of another release.
 * @throws DecodeError for a value of the wrong type
 * Source: pkg/kubelet/kubeletconfig/util/codec/codec.go DecodeKubeletConfiguration
 */
export function unknownFields(file: Written): string[] {
  const unknown: string[] = [];
  decodeShape(file, kubeletConfiguration, unknown);
  return unknown;
}

/** Fields of the file that were set and do nothing, for the log at start. */
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

/** @returns the file with its relative paths from `folder` on */
export function absolutePaths(file: Written, folder: string): Written {
  return pathFields.reduce((fields, path) => withAbsolute(fields, path.split("."), folder), file);
}

function withAbsolute(fields: Written, [first = "", ...rest]: readonly string[], folder: string): Written {
  const value = Object.hasOwn(fields, first) ? fields[first] : undefined;
  if (rest.length > 0) return isJsonObject(value) ? { ...fields, [first]: withAbsolute(value, rest, folder) } : fields;
  return typeof value === "string" && value !== "" ? { ...fields, [first]: resolve(folder, value) } : fields;
}
