import { readFileSync } from "node:fs";
import { type SettingValues, valuesOfFlags } from "@coxswain/apimachinery/flags/settings";
import { decodePod } from "@coxswain/apimachinery/objects/codec/decode-pod";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { attachDetachSettings, hostPathRecyclerSettings, nfsRecyclerSettings, volumeBinderSettings } from "../flags/volumes.ts";
import type { ControllerManagerFlags } from "../flags.ts";

/** Configuration of the volume controllers. */
export interface VolumesConfig extends Readonly<SettingValues<typeof volumeBinderSettings>> {
  readonly recyclers: { readonly hostPath: RecyclerConfig; readonly nfs: RecyclerConfig };
  readonly attachDetach: { readonly syncPeriodMs: number; readonly sync: boolean };
}

/** Recycler Pod template with its minimum timeout and the additional timeout per Gi. */
export interface RecyclerConfig {
  readonly template: Pod;
  readonly minimumTimeoutSeconds: number;
  readonly timeoutIncrementSeconds: number;
}

/**
 * Computes the configuration of the volume controllers from the flags, and reads the recycler templates.
 * @param errors receives the errors of templates
 */
export function volumesConfigOf(flags: ControllerManagerFlags, errors: string[]): VolumesConfig {
  const { syncPeriodMs, isSyncDisabled } = valuesOfFlags(attachDetachSettings, flags);
  const recycler = (settings: typeof nfsRecyclerSettings, what: string): RecyclerConfig => {
    const { templatePath, ...timeouts } = valuesOfFlags(settings, flags);
    return { template: readTemplate(templatePath, what, errors), ...timeouts };
  };
  return {
    ...valuesOfFlags(volumeBinderSettings, flags),
    recyclers: { hostPath: recycler(hostPathRecyclerSettings, "hostpath"), nfs: recycler(nfsRecyclerSettings, "NFS") },
    attachDetach: { syncPeriodMs, sync: !isSyncDisabled },
  };
}

/** The recycler replaces the first volume. Source: pkg/volume/plugins.go NewPersistentVolumeRecyclerPodTemplate */
export const defaultRecyclerPod: Pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { generateName: "pv-recycler-", namespace: "default" },
  spec: {
    activeDeadlineSeconds: 60,
    restartPolicy: "Never",
    volumes: [{ name: "vol" }],
    containers: [
      {
        name: "pv-recycler",
        image: "k8s.gcr.io/debian-base:v2.0.0",
        command: ["/bin/sh"],
        args: ["-c", 'test -e /scrub && rm -rf /scrub/..?* /scrub/.[!.]* /scrub/*  && test -z "$(ls -A /scrub)" || exit 1'],
        volumeMounts: [{ name: "vol", mountPath: "/scrub" }],
      },
    ],
  },
};

function readTemplate(path: string, what: string, errors: string[]): Pod {
  if (path === "") return defaultRecyclerPod;
  try {
    const pod = decodePod(parseYaml(readFileSync(path, "utf8")));
    if ((pod.spec?.volumes ?? []).length === 0) throw new Error(`Pod specification (${path}): does not contain any volume(s)`);
    return { ...pod, metadata: { ...pod.metadata, namespace: pod.metadata.namespace || "default" } };
  } catch (err) {
    errors.push(`Could not create ${what} recycler pod from file ${path}: ${messageOf(err)}`);
    return defaultRecyclerPod;
  }
}
