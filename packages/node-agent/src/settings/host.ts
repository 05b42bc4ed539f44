import { between, oneOf } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int32, string } from "@coxswain/apimachinery/flags/types";
import { inFile } from "./notices.ts";

/** The machine: kernel settings, iptables, volumes. */
export const hostSettings = {
  hairpinMode: string({
    flag: "hairpin-mode",
    field: "hairpinMode",
    default: "promiscuous-bridge",
    deprecated: inFile,
    idle: "only dockershim uses it upstream; here the network plugin sets hairpin mode up",
    must: oneOf(
      ["none", "hairpin-veth", "promiscuous-bridge"],
      (value, name) => `option ${value} specified for ${name}. Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`,
    ),
    help: "How hairpin packets are set up, so that a service's endpoints can reach themselves through it. Possible values: 'promiscuous-bridge', 'hairpin-veth', 'none'.",
  }),
  makeIptablesUtilChains: bool({
    flag: "make-iptables-util-chains",
    field: "makeIPTablesUtilChains",
    default: true,
    deprecated: inFile,
    help: "If true, the kubelet makes sure that the iptables utility rules are there.",
  }),
  iptablesDropBit: int32({
    flag: "iptables-drop-bit",
    field: "iptablesDropBit",
    default: 15,
    deprecated: inFile,
    must: between(0, 31),
    help: "The bit of the fwmark space that marks packets to drop, from 0 to 31.",
  }),
  iptablesMasqueradeBit: int32({
    flag: "iptables-masquerade-bit",
    field: "iptablesMasqueradeBit",
    default: 14,
    deprecated: inFile,
    must: between(0, 31),
    help: "The bit of the fwmark space that marks packets for SNAT, from 0 to 31. Must be the same as kube-proxy's.",
  }),
  protectKernelDefaults: bool({
    flag: "protect-kernel-defaults",
    field: "protectKernelDefaults",
    deprecated: inFile,
    help: "If true, kernel tunables that differ from the kubelet's defaults are an error; otherwise it changes them.",
  }),
  oomScoreAdj: int32({
    flag: "oom-score-adj",
    field: "oomScoreAdj",
    default: -999,
    deprecated: inFile,
    must: between(-1000, 1000),
    help: "The kubelet's own oom_score_adj, from -1000 to 1000.",
  }),
  failSwapOn: bool({
    flag: "fail-swap-on",
    field: "failSwapOn",
    default: true,
    deprecated: inFile,
    help: "Makes the kubelet fail to start when swap is on.",
  }),
  /** The attach/detach controller attaches volumes, not the agent. */
  controllerAttachDetach: bool({
    flag: "enable-controller-attach-detach",
    field: "enableControllerAttachDetach",
    default: true,
    deprecated: inFile,
    help: "Lets the attach/detach controller manage the volumes of pods on this node, instead of the kubelet.",
  }),
  keepTerminatedPodVolumes: bool({
    flag: "keep-terminated-pod-volumes",
    deprecated: inFile,
    help: "Keeps volumes of ended pods mounted on the node, to debug them.",
  }),
  /** Interval of volume usage measurements; 0 or less disables them. */
  volumeStatsMs: duration({
    flag: "volume-stats-agg-period",
    field: "volumeStatsAggPeriod",
    default: "1m0s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How often disk usage of pods and volumes is worked out and kept. 0 or less turns it off.",
  }),
  /** Directory of FlexVolume drivers. */
  volumePluginDir: string({
    flag: "volume-plugin-dir",
    field: "volumePluginDir",
    default: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    deprecated: inFile,
    isPath: true,
    help: "Full path of the directory to look for third-party volume plugins in.",
  }),
};
