import { rule } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int32, mapStringString, string, structure, text } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";
import { type ShutdownGroup, shutdownGroupShape, taintShape } from "./structures.ts";

/** The Node object: name, addresses, registration, status. */
export const nodeSettings = {
  hostnameOverride: string({
    flag: "hostname-override",
    help: "If given, it is the node's name instead of the host's. With a cloud provider, the provider decides.",
  }),
  cloudProvider: string({
    flag: "cloud-provider",
    deprecated: leaving,
    help: "The provider of cloud services: external, or empty for none. With external the node is registered with a taint until the cloud's controller manager has initialized it.",
  }),
  nodeIp: string({
    flag: "node-ip",
    help: "IP address of the node, or an IPv4 and an IPv6 address. If unset, the default interface's; '::' prefers IPv6.",
  }),
  nodeLabels: mapStringString({
    flag: "node-labels",
    help: "Labels to add when the node registers, as key=value pairs. Labels in kubernetes.io must begin with an allowed prefix or be one of the allowed ones.",
  }),
  registerNode: bool({
    flag: "register-node",
    field: "registerNode",
    default: true,
    help: "Registers the node with the API server. Without --kubeconfig it does nothing.",
  }),
  registerSchedulable: bool({
    flag: "register-schedulable",
    default: true,
    deprecated: inFile,
    help: "Registers the node as schedulable. Without --register-node it does nothing.",
  }),
  /** See `AgentConfig.registerWithTaints` for the parsed taints. */
  taints: text("[]api.Taint", {
    flag: "register-with-taints",
    field: "registerWithTaints",
    shape: [taintShape],
    help: "Registers the node with these taints, as <key>=<value>:<effect>, comma separated. Without --register-node it does nothing.",
  }),
  providerId: string({
    flag: "provider-id",
    field: "providerID",
    deprecated: inFile,
    help: "Unique identifier of the machine for the cloud provider.",
  }),
  nodeStatusUpdateFrequencyMs: duration({
    flag: "node-status-update-frequency",
    field: "nodeStatusUpdateFrequency",
    default: "10s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How often node status is sent. Must fit the controller manager's --node-monitor-grace-period.",
  }),
  nodeStatusReportFrequencyMs: duration({
    field: "nodeStatusReportFrequency",
    default: "5m0s",
    zeroIsDefault: "inFile",
    help: "How often node status is sent while it does not change.",
  }),
  nodeLeaseDurationSeconds: int32({
    field: "nodeLeaseDurationSeconds",
    default: 40,
    zeroIsDefault: "always",
    must: rule(
      "more than 0",
      (seconds: number) => seconds > 0,
      (_, name) => `${name} must be greater than 0`,
    ),
    help: "How long the node's lease is valid.",
  }),
  nodeStatusMaxImages: int32({
    flag: "node-status-max-images",
    field: "nodeStatusMaxImages",
    default: 50,
    deprecated: inFile,
    must: rule(
      "-1 or more",
      (images: number) => images >= -1,
      (images, name) => `${name} ${images} must be -1 or greater`,
    ),
    help: "The largest number of images in node status. -1: no cap.",
  }),
  shutdownGraceMs: duration({
    field: "shutdownGracePeriod",
    zeroIsDefault: "inFile",
    help: "How long the shutdown of the node is delayed for pods to end. 0: not at all.",
  }),
  shutdownGraceCriticalMs: duration({
    field: "shutdownGracePeriodCriticalPods",
    zeroIsDefault: "inFile",
    help: "The part of shutdownGracePeriod that is reserved for critical pods.",
  }),
  shutdownGroups: structure<readonly ShutdownGroup[]>({
    field: "shutdownGracePeriodByPodPriority",
    shape: [shutdownGroupShape],
    default: [],
    help: "Grace periods at shutdown by priority of pods, instead of the two periods.",
  }),
};
