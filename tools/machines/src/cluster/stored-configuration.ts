/** The configuration that the cluster was created with, as stored in its ConfigMaps. */

import type { Client } from "@coxswain/apimachinery/client/client";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isForbidden, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { readDocuments } from "../config/documents.ts";
import { type ClusterSettings, clusterSettings } from "../config/settings.ts";
import { Failure } from "../failure.ts";
import { kubeadmConfigName, kubeletConfigName } from "./bootstrap-objects.ts";

export interface StoredConfiguration {
  readonly cluster: ClusterSettings;
  /** The kubelets' KubeletConfiguration. */
  readonly kubelet: Readonly<Record<string, unknown>>;
}

const requestMs = 30_000;

/** Reads an object of kube-system. @returns undefined when it does not exist or this client may not read it. @throws Failure */
export async function readObject<T extends object>(
  client: Client,
  resource: "configmaps" | "secrets",
  name: string,
): Promise<T | undefined> {
  const ref = resource === "configmaps" ? configMaps : secrets;
  try {
    return await client.get<T>(ref, { namespace: "kube-system", name }, { signal: AbortSignal.timeout(requestMs) });
  } catch (err) {
    if (isNotFound(err) || isForbidden(err)) return undefined;
    throw new Failure(`cannot read ${resource} kube-system/${name} of the cluster: ${messageOf(err)}`);
  }
}

/** @returns undefined when it does not exist or this client may not read it. @throws Failure */
export async function storedConfiguration(client: Client): Promise<StoredConfiguration | undefined> {
  const config = await readObject<ConfigMap>(client, "configmaps", kubeadmConfigName);
  const kubelet = await readObject<ConfigMap>(client, "configmaps", kubeletConfigName);
  if (config === undefined || kubelet === undefined) return undefined;
  const text = dataOf(config, "ClusterConfiguration");
  const { ClusterConfiguration } = readDocuments(text, `ConfigMap kube-system/${kubeadmConfigName}`);
  return { cluster: clusterSettings(ClusterConfiguration), kubelet: kubeletIn(dataOf(kubelet, "kubelet")) };
}

/** @throws Failure */
function dataOf({ metadata, data }: ConfigMap, key: string): string {
  const text = data?.[key];
  if (text === undefined || text.trim() === "") throw new Failure(`ConfigMap kube-system/${metadata.name} has no ${key}`);
  return text;
}

/** @throws Failure */
function kubeletIn(text: string): Record<string, unknown> {
  const place = `ConfigMap kube-system/${kubeletConfigName}`;
  let parsed: unknown;
  try {
    parsed = parseYaml(text);
  } catch (err) {
    throw new Failure(`${place}: ${messageOf(err)}`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Failure(`${place}: kubelet is not a map`);
  return parsed as Record<string, unknown>; // cast: checked above
}
