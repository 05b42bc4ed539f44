/** The rules of each kind, by resource and group. */
import type { KindRules } from "../rule.ts";
import { budgetKind, quotaKind, scalerKind } from "./autoscaling.ts";
import { apiServiceKind, definitionKind, signingRequestKind, webhooksKind } from "./extensions.ts";
import { cronJobKind, jobKind } from "./jobs.ts";
import { namespaceKind } from "./namespaces.ts";
import { nodeKind } from "./nodes.ts";
import { podRules } from "./pod.ts";
import { endpointSliceKind, endpointsKind, ingressKind, serviceKind } from "./services.ts";
import { claimKind, volumeAttachmentKind, volumeKind } from "./volumes.ts";
import { daemonSetKind, deploymentKind, replicaSetKind, replicationControllerKind, statefulSetKind } from "./workloads.ts";

/** Rules by `<resource>.<group>`. A kind that is not listed has only the rules for any object. */
export const rulesByKind: Readonly<Record<string, KindRules>> = {
  "pods.": podRules,
  "nodes.": nodeKind,
  "namespaces.": namespaceKind,
  "services.": serviceKind,
  "endpoints.": endpointsKind,
  "endpointslices.discovery.k8s.io": endpointSliceKind,
  "ingresses.networking.k8s.io": ingressKind,
  "persistentvolumeclaims.": claimKind,
  "persistentvolumes.": volumeKind,
  "volumeattachments.storage.k8s.io": volumeAttachmentKind,
  "replicationcontrollers.": replicationControllerKind,
  "replicasets.apps": replicaSetKind,
  "deployments.apps": deploymentKind,
  "statefulsets.apps": statefulSetKind,
  "daemonsets.apps": daemonSetKind,
  "jobs.batch": jobKind,
  "cronjobs.batch": cronJobKind,
  "horizontalpodautoscalers.autoscaling": scalerKind,
  "poddisruptionbudgets.policy": budgetKind,
  "resourcequotas.": quotaKind,
  "certificatesigningrequests.certificates.k8s.io": signingRequestKind,
  "customresourcedefinitions.apiextensions.k8s.io": definitionKind,
  "apiservices.apiregistration.k8s.io": apiServiceKind,
  "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooksKind,
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooksKind,
};
