/** The public API of `@coxswain/testing`; everything else is internal. */
export type { Client } from "@coxswain/apimachinery/client/client";
export type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
export type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
export type { Manifests } from "./cluster/apply.ts";
export type { ClusterOptions } from "./cluster/options.ts";
export type { SocketOptions } from "./cluster/socket.ts";
export type { SettleOptions, WaitOptions } from "./cluster/wait-options.ts";
export { type Cluster, createCluster } from "./create-cluster.ts";
export type { Fault, FaultMatch, Faults, InjectedFault } from "./faults/faults.ts";
export type { ObjectTarget } from "./history/target.ts";
export type { FakeNodes, NodeSpec } from "./nodes/fake-nodes.ts";
export type { Exec, ExecRequest, ExecResult, LogLines, LogRequest, Logs } from "./nodes/kubelet/rules.ts";
export type { ContainerUsage, ContainerUsages, UsageRequest } from "./nodes/metrics/usage.ts";
export type { PodMatch, PodRule } from "./nodes/pod-rules.ts";
export type { PodStage, StageExpression, StageMoment, StageOutcome, StageSelector } from "./nodes/pod-stages.ts";
export type { Duration } from "./time/duration.ts";
export type { WebListener } from "./tls/in-process-tls.ts";
