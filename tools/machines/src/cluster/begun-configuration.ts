/** The configuration of an unfinished init, kept on this machine until the cluster stores it, so that a repeated init uses it. */
import { rmSync } from "node:fs";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { type Documents, readDocuments } from "../config/documents.ts";
import { readIfThere, writeFiles } from "../host/files.ts";
import type { Machine } from "../machine.ts";
import type { Step } from "../steps.ts";

export const begunFile = "/var/lib/coxswain/init.yaml";

/** @throws UsageFailure */
export function begunConfiguration(): Documents | undefined {
  const text = readIfThere(begunFile);
  return text === undefined ? undefined : readDocuments(text, begunFile);
}

/** Pure: without tokens and keys. */
export function begunText({ InitConfiguration = {}, ClusterConfiguration = {}, KubeletConfiguration }: Documents): string {
  const { nodeRegistration = {}, localAPIEndpoint = {} } = InitConfiguration;
  const kubeadm = { apiVersion: "kubeadm.k8s.io/v1beta3" };
  return [
    { ...kubeadm, kind: "InitConfiguration", nodeRegistration, localAPIEndpoint },
    { ...kubeadm, kind: "ClusterConfiguration", ...ClusterConfiguration },
    ...(KubeletConfiguration === undefined ? [] : [KubeletConfiguration]),
  ]
    .map(toYaml)
    .join("---\n");
}

/** First step of init: stores the configuration. */
export const keepConfigurationStep = (documents: Documents): Step<Machine> => ({
  name: "configuration",
  missing: () => (readIfThere(begunFile) === begunText(documents) ? [] : [`keep it in ${begunFile} until the cluster has it`]),
  run: () => writeFiles([{ path: begunFile, content: begunText(documents), mode: 0o600 }]),
});

/** Removes the stored configuration, after the phase upload-config. */
export const forgetConfigurationStep: Step<Machine> = {
  name: "configuration",
  missing: () => (readIfThere(begunFile) === undefined ? [] : [`remove ${begunFile}`]),
  run: () => rmSync(begunFile, { force: true }),
};
