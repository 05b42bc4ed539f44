/**
 * --admission-control-config-file: an AdmissionConfiguration lists plugins, each with an inline configuration or the path
 * of a file, relative to this one. The two legacy formats, of PodNodeSelector and ImagePolicyWebhook, have no such wrapper:
 * the whole file is the plugin's configuration.
 * Source: k8s.io/apiserver pkg/admission/config.go
 */

import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

/** @returns the configuration of the plugin with that name; undefined when there is none. */
export type PluginConfigurations = (plugin: string) => unknown;

interface AdmissionConfiguration {
  apiVersion?: unknown;
  kind?: unknown;
  plugins?: { name?: unknown; path?: unknown; configuration?: unknown }[];
}

const versions = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const olderFormats = [
  { plugin: "PodNodeSelector", key: "podNodeSelectorPluginConfig" },
  { plugin: "ImagePolicyWebhook", key: "imagePolicy" },
];

const webhookKinds = [
  "apiserver.config.k8s.io/v1 WebhookAdmissionConfiguration",
  "apiserver.config.k8s.io/v1alpha1 WebhookAdmission",
];

/** apiVersion and kind accepted per plugin; the plugin itself validates the contents. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  PodSecurity: [
    "pod-security.admission.config.k8s.io/v1alpha1 PodSecurityConfiguration",
    "pod-security.admission.config.k8s.io/v1beta1 PodSecurityConfiguration",
  ],
  EventRateLimit: ["eventratelimit.admission.k8s.io/v1alpha1 Configuration"],
  ResourceQuota: [
    "apiserver.config.k8s.io/v1 ResourceQuotaConfiguration",
    "resourcequota.admission.k8s.io/v1beta1 Configuration",
    "resourcequota.admission.k8s.io/v1alpha1 Configuration",
  ],
  MutatingAdmissionWebhook: webhookKinds,
  ValidatingAdmissionWebhook: webhookKinds,
  PodTolerationRestriction: ["podtolerationrestriction.admission.k8s.io/v1alpha1 Configuration"],
};

/** @param path "" when the flag is not set. @throws Error naming the file that is invalid. */
export function readPluginConfigurations(path: string): PluginConfigurations {
  if (path === "") return () => undefined;
  const document = readDocument(path);
  if (typeof document !== "object" || document === null) {
    throw new Error(`admission-control-config-file ${path}: not a configuration`);
  }
  const file: AdmissionConfiguration = document;
  const older = olderFormats.find(({ key }) => file.kind === undefined && Object.hasOwn(file, key));
  if (older !== undefined) return (plugin) => (plugin === older.plugin ? file : undefined);
  if (file.kind !== "AdmissionConfiguration" || !versions.includes(String(file.apiVersion))) {
    throw new Error(
      `admission-control-config-file ${path}: no kind ${JSON.stringify(file.kind ?? "")} is registered for version ${JSON.stringify(file.apiVersion ?? "")}`,
    );
  }
  const found = new Map<string, unknown>();
  for (const entry of file.plugins ?? []) {
    const name = String(entry?.name ?? "");
    let own: unknown;
    if (entry?.configuration !== undefined && entry.configuration !== null) own = entry.configuration;
    else if (typeof entry?.path === "string" && entry.path !== "") {
      own = readDocument(isAbsolute(entry.path) ? entry.path : join(dirname(path), entry.path));
    }
    if (own !== undefined && !found.has(name)) found.set(name, checked(name, own));
  }
  return (plugin) => found.get(plugin);
}

function checked(plugin: string, configuration: unknown): unknown {
  if (typeof configuration !== "object" || configuration === null) {
    throw new Error(`the configuration of admission plugin ${plugin} is not a map`);
  }
  const accepted = Object.hasOwn(kinds, plugin) ? kinds[plugin]! : undefined;
  const { apiVersion = "", kind = "" }: { apiVersion?: unknown; kind?: unknown } = configuration;
  if (accepted !== undefined && !accepted.includes(`${apiVersion} ${kind}`)) {
    throw new Error(
      `the configuration of admission plugin ${plugin}: no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
  }
  return configuration;
}

function readDocument(path: string): unknown {
  try {
    return parseYaml(readFileSync(path, "utf8"));
  } catch (err) {
    throw new Error(`unable to read admission control configuration from ${JSON.stringify(path)} [${messageOf(err)}]`, {
      cause: err,
    });
  }
}
