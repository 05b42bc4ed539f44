import { rule } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int32, string, stringSlice } from "@coxswain/apimachinery/flags/types";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";

/** Volumes: attaching, binding, recycling. */

export const attachDetachSettings = {
  syncPeriodMs: duration({
    flag: "attach-detach-reconcile-sync-period",
    default: "1m0s",
    must: rule(
      "1s or more",
      (ms) => ms >= 1000,
      () => "duration time must be greater than one second as set via command line option reconcile-sync-loop-period",
    ),
    help: "How often volume attachments are reconciled. Must be more than one second; a large value may make volumes and pods disagree.",
  }),
  isSyncDisabled: bool({
    flag: "disable-attach-detach-reconcile-sync",
    help: "Turns the periodic reconciling of volume attachments off. This may make volumes and pods disagree.",
  }),
};

export const volumeBinderSettings = {
  binderSyncPeriodMs: duration({
    flag: "pvclaimbinder-sync-period",
    default: "15s",
    help: "The period of syncing persistent volumes and claims.",
  }),
  dynamicProvisioning: bool({
    flag: "enable-dynamic-provisioning",
    default: true,
    help: "Enables dynamic provisioning where the environment supports it.",
  }),
  hostPathProvisioner: bool({
    flag: "enable-hostpath-provisioner",
    help: "Enables host path provisioning when running without a cloud provider, to test and develop provisioning. Unsupported, and wrong on more than one node.",
  }),
  /** Directory of the flex volume drivers. */
  flexPluginDir: string({
    flag: "flex-volume-plugin-dir",
    default: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    help: "Full path of the directory in which the flex volume plugin looks for third-party plugins.",
  }),
};

export const hostPathRecyclerSettings = {
  templatePath: string({
    flag: "pv-recycler-pod-template-filepath-hostpath",
    help: "File with the pod definition that is the template for HostPath recycling. For development and testing only.",
  }),
  minimumTimeoutSeconds: int32({
    flag: "pv-recycler-minimum-timeout-hostpath",
    default: 60,
    help: "Least ActiveDeadlineSeconds of a HostPath recycler pod. For development and testing only.",
  }),
  timeoutIncrementSeconds: int32({
    flag: "pv-recycler-timeout-increment-hostpath",
    default: 30,
    help: "Seconds added to ActiveDeadlineSeconds of a HostPath scrubber pod for each Gi. For development and testing only.",
  }),
};

export const nfsRecyclerSettings = {
  templatePath: string({
    flag: "pv-recycler-pod-template-filepath-nfs",
    help: "File with the pod definition that is the template for NFS recycling.",
  }),
  minimumTimeoutSeconds: int32({
    flag: "pv-recycler-minimum-timeout-nfs",
    default: 300,
    help: "Least ActiveDeadlineSeconds of an NFS recycler pod.",
  }),
  timeoutIncrementSeconds: int32({
    flag: "pv-recycler-increment-timeout-nfs",
    default: 30,
    help: "Seconds added to ActiveDeadlineSeconds of an NFS scrubber pod for each Gi.",
  }),
};

/** Without effect, except that ranges are checked. */
export const volumeHostFlags = {
  "volume-host-allow-local-loopback": bool({
    default: true,
    wired: false,
    help: "If false, local loopback addresses are denied besides those of --volume-host-cidr-denylist.",
  }),
  "volume-host-cidr-denylist": stringSlice({
    wired: false,
    must: {
      kind: "cidrs",
      allowed: "CIDR ranges",
      problem: (cidrs) => {
        const wrong = cidrs.filter((cidr) => parseCidr(cidr) === undefined);
        const texts = wrong.map((cidr) => `failed to parse cidr value:"${cidr}" with error:invalid CIDR address: ${cidr}`);
        return texts.length === 0 ? undefined : texts.join("; ");
      },
    },
    help: "CIDR ranges of addresses that volume plugins must not use.",
  }),
};
