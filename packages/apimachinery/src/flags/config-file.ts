import { readFileSync } from "node:fs";
import { parseYaml } from "../objects/codec/yaml.ts";
import { messageOf } from "../objects/errors/message.ts";
import { isJsonObject } from "../objects/meta/json-value.ts";

/**
 * Reads a component's configuration file, YAML or JSON.
 * @param kind `KubeletConfiguration`
 * @param apiVersions accepted versions, `kubelet.config.k8s.io/v1beta1`
 * @returns the object without defaults
 * @throws Error that names the file, when it is unreadable or of another kind
 */
export function readConfigFile(path: string, kind: string, apiVersions: readonly string[]): Record<string, unknown> {
  let config: unknown;
  try {
    config = parseYaml(readFileSync(path, "utf8"));
  } catch (err) {
    throw new Error(`failed to load config file ${path}: ${messageOf(err)}`, { cause: err });
  }
  if (!isJsonObject(config)) throw new Error(`failed to load config file ${path}: it does not contain an object`);
  const written: { apiVersion?: unknown; kind?: unknown } = config;
  if (written.kind !== kind || !apiVersions.includes(String(written.apiVersion))) {
    throw new Error(
      `failed to load config file ${path}: no kind ${JSON.stringify(written.kind ?? "")} is registered for version ${JSON.stringify(written.apiVersion ?? "")}`,
    );
  }
  return config;
}
