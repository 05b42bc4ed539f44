/** The public API of `@coxswain/apimachinery`: a client, informers, controllers. Everything else is internal. */
export * from "./client/client.ts";
export type { ClientConfig, Impersonation } from "./client/config.ts";
export { configFromFlags, inClusterConfig } from "./client/in-cluster.ts";
export { loadKubeconfig, parseKubeconfig } from "./client/kubeconfig.ts";
export { type Controller, type ControllerOptions, done, newController, type Result } from "./controller/controller.ts";
export { type EventRecorder, newEventRecorder } from "./controller/event-recorder.ts";
export { type LeaderElectionOptions, runLeaderElection } from "./controller/leader-election.ts";
export { newResourceLock, type ResourceLock } from "./controller/resource-lock.ts";
export { enqueueControllerOwner, enqueueMapped, enqueueSelf, type Source } from "./controller/sources.ts";
export type { InProcessDaemon, InProcessOptions } from "./flags/in-process.ts";
export { type InformerFactory, newInformerFactory } from "./informers/factory.ts";
export type { InformerHandler, SharedInformer } from "./informers/shared-informer.ts";
export * from "./objects/errors/predicates.ts";
export { StatusError } from "./objects/errors/status-error.ts";
export type { ResourceRef } from "./objects/meta/group-version.ts";
export type { KubeList, KubeObject, Status, Unstructured } from "./objects/meta/types.ts";
export { type Clock, realClock, type Timer } from "./process/clock/clock.ts";
export { discardLogger, type Logger, newLogger } from "./process/logging/logger.ts";
