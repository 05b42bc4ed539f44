/** HorizontalPodAutoscalers, PodDisruptionBudgets and ResourceQuotas. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { Pod, ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { quantityIn } from "@coxswain/apimachinery/quota/resource-list";
import { refToObject } from "../refusals.ts";
import {
  conditionOf,
  isSeen,
  type Look,
  labelsText,
  latestEvent,
  oneLine,
  plural,
  type Rule,
  rulesFor,
  sinceTime,
} from "../rule.ts";

interface ScalerFacts {
  readonly target: Look<KubeObject>;
  readonly targetRef: ObjectRef | undefined;
  readonly metrics: Look<KubeObject>;
}

const scaler = "horizontal-pod-autoscaler";

const targetText = ({ spec: { scaleTargetRef: target } }: HorizontalPodAutoscaler): string =>
  `${target.kind.toLowerCase()}/${target.name}`;

const scalerRules: Rule<HorizontalPodAutoscaler, ScalerFacts>[] = [
  ({ object, related: { target } }) => {
    const able = conditionOf(object.status?.conditions, "AbleToScale");
    if (target === "missing") {
      return {
        by: scaler,
        reason: "TargetMissing",
        summary: `its target ${targetText(object)} does not exist`,
        remedy: "Create the target, or correct scaleTargetRef.",
        ...sinceTime(able?.lastTransitionTime ?? object.metadata.creationTimestamp),
      };
    }
    if (able?.status !== "False") return undefined;
    return {
      by: scaler,
      reason: able.reason ?? "UnableToScale",
      summary: `cannot scale ${targetText(object)}: ${oneLine(able.message)}`,
      remedy: "Check that the target has a scale subresource.",
      ...sinceTime(able.lastTransitionTime),
    };
  },
  ({ object, events, related: { metrics } }) => {
    const active = conditionOf(object.status?.conditions, "ScalingActive");
    if (active?.status !== "False") return undefined;
    const since = sinceTime(active.lastTransitionTime);
    if (active.reason === "ScalingDisabled") {
      return {
        by: scaler,
        reason: active.reason,
        summary: `does nothing while its target ${targetText(object)} has 0 replicas`,
        remedy: `Scale the target to at least 1: kubectl scale ${targetText(object)} --replicas=1`,
        ...since,
      };
    }
    const text = active.message ?? latestEvent(events, ["FailedGetResourceMetric"])?.message;
    const request = /missing request for (\w+)/.exec(text ?? "");
    if (request !== null) {
      return {
        by: scaler,
        reason: "RequestMissing",
        summary: `a container of ${targetText(object)} has no ${request[1]} request, which the target utilization is a percentage of`,
        remedy: `Set resources.requests.${request[1]} in every container of the template, or use a target of type AverageValue.`,
        ...since,
      };
    }
    // Metrics of objects and external ones come from other APIs.
    const ofResource = active.reason === "FailedGetResourceMetric" || active.reason === "FailedGetContainerResourceMetric";
    const away = metrics === "missing" || /could not find the requested resource|metrics\.k8s\.io/.test(text ?? "");
    if (ofResource && away) {
      return {
        by: scaler,
        reason: "MetricsApiAway",
        summary: `the metrics API (metrics.k8s.io) does not respond: ${oneLine(text, 240)}`,
        remedy:
          "Install metrics-server or start the part metrics of coxswain-services; kubectl why apiservice/v1beta1.metrics.k8s.io",
        ...(isSeen(metrics) && {
          follow: [refToObject("apiregistration.k8s.io", "apiservices", "APIService", "", "v1beta1.metrics.k8s.io")],
        }),
        ...since,
      };
    }
    return {
      by: scaler,
      reason: active.reason ?? "ScalingInactive",
      summary: `gets no metrics: ${oneLine(text)}`,
      remedy: "Check that the pods run and the metric exists: kubectl top pods",
      ...since,
    };
  },
  ({ object: { status, spec, metadata } }) => {
    const limited = conditionOf(status?.conditions, "ScalingLimited");
    if (limited?.status !== "True" || limited.reason !== "TooManyReplicas") return undefined;
    return {
      by: scaler,
      reason: limited.reason,
      summary: `wants more replicas than maxReplicas (${spec.maxReplicas}) allows`,
      remedy: `Raise maxReplicas of ${metadata.name}, or increase the resources of each pod.`,
      ...sinceTime(limited.lastTransitionTime),
    };
  },
  ({ object, related: { targetRef } }) => ({
    by: scaler,
    reason: "TargetNotWell",
    summary: `its target ${targetText(object)} is not healthy`,
    follow: targetRef === undefined ? [] : [targetRef],
    onlyIfFollowed: true,
  }),
];

export const scalerKind = rulesFor<HorizontalPodAutoscaler, ScalerFacts>({
  async gather(object, reader) {
    const { namespace = "" } = object.metadata;
    const { apiVersion = "", kind, name } = object.spec.scaleTargetRef;
    const served = reader.resourceOf(apiVersion, kind);
    const target = served === undefined ? "missing" : await reader.get(served.resource, served.group, namespace, name);
    return {
      target,
      targetRef: served && refToObject(served.group, served.resource, kind, namespace, name),
      metrics: await reader.get("apiservices", "apiregistration.k8s.io", "", "v1beta1.metrics.k8s.io"),
    };
  },
  rules: scalerRules,
});

interface BudgetFacts {
  readonly pods: readonly Pod[] | undefined;
  readonly unready: readonly ObjectRef[];
}

const disruption = "disruption-controller";

const budgetRules: Rule<PodDisruptionBudget, BudgetFacts>[] = [
  ({ object: { spec, metadata }, related: { pods } }) => {
    if (pods === undefined || pods.length > 0) return undefined;
    const selector = labelsText(spec?.selector?.matchLabels);
    return {
      by: disruption,
      reason: "SelectorMatchesNone",
      summary: `its selector ${selector} matches no pod: it protects nothing`,
      remedy: "Correct the selector.",
      ...sinceTime(metadata.creationTimestamp),
    };
  },
  ({ object: { status } }) => {
    const synced = (status?.conditions ?? []).find(({ reason }) => reason === "SyncFailed");
    if (synced === undefined) return undefined;
    return {
      by: disruption,
      reason: "SyncFailed",
      summary: `the budget cannot be computed: ${oneLine(synced.message)}`,
      remedy: "Use controllers with a scale subresource for all pods, or use minAvailable with a number.",
      ...sinceTime(synced.lastTransitionTime),
    };
  },
  ({ object: { status, spec, metadata }, related: { unready } }) => {
    if (status === undefined || status.disruptionsAllowed > 0) return undefined;
    const { currentHealthy, desiredHealthy, expectedPods } = status;
    const wants =
      spec?.minAvailable === undefined ? `maxUnavailable ${spec?.maxUnavailable}` : `minAvailable ${spec.minAvailable}`;
    const since = sinceTime(conditionOf(status.conditions, "DisruptionAllowed")?.lastTransitionTime);
    if (currentHealthy < desiredHealthy) {
      return {
        by: disruption,
        reason: "NotEnoughHealthyPods",
        summary: `allows no eviction: ${currentHealthy} of ${plural(expectedPods, "pod")} healthy, ${wants} needs ${desiredHealthy}`,
        follow: unready,
        ...since,
      };
    }
    return {
      by: disruption,
      reason: "NoDisruptionsAllowed",
      summary: `allows no eviction: ${wants} needs all ${plural(expectedPods, "pod")}, and ${currentHealthy} are healthy`,
      remedy: `Scale up the pods' controller, or lower minAvailable of ${metadata.name} (or set maxUnavailable: 1), before a node is drained.`,
      ...since,
    };
  },
];

const isReady = ({ status }: Pod): boolean => conditionOf(status?.conditions, "Ready")?.status === "True";

export const budgetKind = rulesFor<PodDisruptionBudget, BudgetFacts>({
  async gather(object, reader) {
    const selector = LabelSelector.fromObject(object.spec?.selector);
    const pods = await reader.list<Pod>("pods", "", object.metadata.namespace ?? "", selector);
    const unready = (pods ?? []).filter((pod) => !isReady(pod));
    return { pods, unready: unready.map((pod) => reader.refOf(pod, "pods", "")) };
  },
  rules: budgetRules,
});

export const quotaKind = rulesFor<ResourceQuota, undefined>({
  gather: async () => undefined,
  rules: [
    ({ object: { spec, status, metadata } }) => {
      const hard = status?.hard ?? spec?.hard ?? {};
      const full = Object.keys(hard).filter((name) => {
        const [limit, used] = [quantityIn(hard, name), quantityIn(status?.used ?? {}, name)];
        return limit !== undefined && used !== undefined && !limit.isZero && used.cmp(limit) >= 0;
      });
      if (full.length === 0) return undefined;
      const texts = full.map((name) => `${name} (${quantityIn(status?.used ?? {}, name)} of ${quantityIn(hard, name)})`);
      return {
        by: "resourcequota-controller",
        reason: "QuotaUsedUp",
        summary: `is used up: ${texts.join(", ")}`,
        remedy: `Raise the quota ${metadata.name}, or delete what is not needed in the namespace.`,
      };
    },
  ],
});
