import { bool, duration, int32, string, stringSlice } from "@coxswain/apimachinery/flags/types";

/** Volumes: attaching, binding, recycling. */

export const attachDetachFlags = {
  "attach-detach-reconcile-sync-period": duration({
    default: "1m0s",
    help: "How often volume attachments are reconciled. Must be more than one second; a large value may make volumes and pods disagree.",
  }),
  "disable-attach-detach-reconcile-sync": bool({
    help: "Turns the periodic reconciling of volume attachments off. This may make volumes and pods disagree.",
  }),
};

export const volumeBinderFlags = {
  "enable-dynamic-provisioning": bool({
    default: true,
    help: "Enables dynamic provisioning where the environment supports it.",
  }),
  "enable-hostpath-provisioner": bool({
    help: "Enables host path provisioning when running without a cloud provider, to test and develop provisioning. Unsupported, and wrong on more than one node.",
  }),
  "flex-volume-plugin-dir": string({
    default: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    help: "Full path of the directory in which the flex volume plugin looks for third-party plugins.",
  }),
  "pv-recycler-increment-timeout-nfs": int32({
    default: 30,
    help: "Seconds added to ActiveDeadlineSeconds of an NFS scrubber pod for each Gi.",
  }),
  "pv-recycler-minimum-timeout-hostpath": int32({
    default: 60,
    help: "Least ActiveDeadlineSeconds of a HostPath recycler pod. For development and testing only.",
  }),
  "pv-recycler-minimum-timeout-nfs": int32({
    default: 300,
    help: "Least ActiveDeadlineSeconds of an NFS recycler pod.",
  }),
  "pv-recycler-pod-template-filepath-hostpath": string({
    help: "File with the pod definition that is the template for HostPath recycling. For development and testing only.",
  }),
  "pv-recycler-pod-template-filepath-nfs": string({
    help: "File with the pod definition that is the template for NFS recycling.",
  }),
  "pv-recycler-timeout-increment-hostpath": int32({
    default: 30,
    help: "Seconds added to ActiveDeadlineSeconds of a HostPath scrubber pod for each Gi. For development and testing only.",
  }),
  "pvclaimbinder-sync-period": duration({
    default: "15s",
    help: "The period of syncing persistent volumes and claims.",
  }),
  "volume-host-allow-local-loopback": bool({
    default: true,
    wired: false,
    help: "If false, local loopback addresses are denied besides those of --volume-host-cidr-denylist.",
  }),
  "volume-host-cidr-denylist": stringSlice({
    help: "CIDR ranges of addresses that volume plugins must not use.",
  }),
};
