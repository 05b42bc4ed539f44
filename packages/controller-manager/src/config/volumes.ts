import { readFileSync } from "node:fs";
import { decodeParsed } from "@coxswain/apimachinery/objects/codec/json";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { ControllerManagerFlags } from "../flags.ts";

/** Configuration of the volume controllers. */
export interface VolumesConfig {
  /** Resync period of the binder. */
  readonly binderSyncPeriodMs: number;
  readonly dynamicProvisioning: boolean;
  readonly hostPathProvisioner: boolean;
  readonly recyclers: { readonly hostPath: RecyclerConfig; readonly nfs: RecyclerConfig };
  readonly attachDetach: { readonly syncPeriodMs: number; readonly sync: boolean };
  /** Directory of the flex volume drivers. */
  readonly flexPluginDir: string;
}

/** Recycler Pod template with its minimum timeout and the additional timeout per Gi. */
export interface RecyclerConfig {
  readonly template: Pod;
  readonly minimumTimeoutSeconds: number;
  readonly timeoutIncrementSeconds: number;
}

/**
 * Validates the flags of the volume controllers and reads the recycler templates.
 * @param errors receives validation errors
 */
export function volumesConfigOf(flags: ControllerManagerFlags, errors: string[]): VolumesConfig {
  const syncPeriodMs = flags["attach-detach-reconcile-sync-period"];
  if (syncPeriodMs < 1000)
    errors.push("duration time must be greater than one second as set via command line option reconcile-sync-loop-period");
  for (const cidr of flags["volume-host-cidr-denylist"]) {
    if (parseCidr(cidr) === undefined)
      errors.push(`failed to parse cidr value:${JSON.stringify(cidr)} with error:invalid CIDR address: ${cidr}`);
  }
  return {
    binderSyncPeriodMs: flags["pvclaimbinder-sync-period"],
    dynamicProvisioning: flags["enable-dynamic-provisioning"],
    hostPathProvisioner: flags["enable-hostpath-provisioner"],
    recyclers: {
      hostPath: {
        template: readTemplate(flags["pv-recycler-pod-template-filepath-hostpath"], "hostpath", errors),
        minimumTimeoutSeconds: flags["pv-recycler-minimum-timeout-hostpath"],
        timeoutIncrementSeconds: flags["pv-recycler-timeout-increment-hostpath"],
      },
      nfs: {
        template: readTemplate(flags["pv-recycler-pod-template-filepath-nfs"], "NFS", errors),
        minimumTimeoutSeconds: flags["pv-recycler-minimum-timeout-nfs"],
        timeoutIncrementSeconds: flags["pv-recycler-increment-timeout-nfs"],
      },
    },
    attachDetach: { syncPeriodMs, sync: !flags["disable-attach-detach-reconcile-sync"] },
    flexPluginDir: flags["flex-volume-plugin-dir"],
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

const podKind = { group: "", version: "v1", kind: "Pod" };

function readTemplate(path: string, what: string, errors: string[]): Pod {
  if (path === "") return defaultRecyclerPod;
  try {
    const pod = decodeParsed(parseYaml(readFileSync(path, "utf8")), podKind).object as unknown as Pod;
    if ((pod.spec?.volumes ?? []).length === 0) throw new Error(`Pod specification (${path}): does not contain any volume(s)`);
    return { ...pod, metadata: { ...pod.metadata, namespace: pod.metadata.namespace || "default" } };
  } catch (err) {
    errors.push(`Could not create ${what} recycler pod from file ${path}: ${messageOf(err)}`);
    return defaultRecyclerPod;
  }
}
