import { parseYaml, toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { ConfigMapNodeConfigSource, NodeConfigSource } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { problems } from "./problems.ts";

/** A specific version of a config map, with `uid` and `resourceVersion` set as in the node's status. */
export type ConfigSource = { configMap: Required<ConfigMapNodeConfigSource> };

const apiVersion = "kubelet.config.k8s.io/v1beta1";
const kind = "SerializedNodeConfigSource";

/** Encodes a source as in upstream's checkpoint files. Source: staging/src/k8s.io/kubelet/config/v1beta1/types.go */
export const encodeSource = (source: ConfigSource): string => toYaml({ apiVersion, kind, source });

/** @throws Error when the text is not a SerializedNodeConfigSource */
export function decodeSource(text: string): ConfigSource {
  const written = parseYaml(text);
  if (!isJsonObject(written) || written.apiVersion !== apiVersion || written.kind !== kind)
    throw new Error(`failed to decode, error: it is not a ${kind} of ${apiVersion}`);
  const map = isJsonObject(written.source) ? written.source.configMap : undefined;
  if (!isJsonObject(map)) throw new Error(problems.nothingNamed);
  const part = (name: keyof ConfigMapNodeConfigSource): string => String(map[name] ?? "");
  return {
    configMap: {
      namespace: part("namespace"),
      name: part("name"),
      uid: part("uid"),
      resourceVersion: part("resourceVersion"),
      kubeletConfigKey: part("kubeletConfigKey"),
    },
  };
}

export const sameSource = (a: ConfigSource | undefined, b: ConfigSource | undefined): boolean => semanticEqual(a, b);

/** `/api/v1/namespaces/kube-system/configmaps/settings` */
export const pathOfSource = ({ configMap }: NodeConfigSource): string =>
  `/api/v1/namespaces/${configMap?.namespace ?? ""}/configmaps/${configMap?.name ?? ""}`;

/** The source as text with UID and resource version, for errors and logs. */
export const showSource = (source: ConfigSource): string =>
  `${pathOfSource(source)}, UID: ${source.configMap.uid}, ResourceVersion: ${source.configMap.resourceVersion}`;
