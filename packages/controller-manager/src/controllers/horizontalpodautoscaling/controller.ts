import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Scale } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerStatus,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { horizontalPodAutoscalers, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { RateLimiter } from "@coxswain/apimachinery/workqueue/rate-limiters";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { newScaleClient, type ScaleClient } from "../../scale/scale-client.ts";
import { type History, newHistory, normalizeReplicas, withScaleEvent } from "./behavior.ts";
import { type MetricsClient, newMetricsClient } from "./metrics-client.ts";
import { MetricError, type MetricProposal, proposalOf } from "./proposals.ts";
import { newStatus, type StatusDraft } from "./status.ts";
import { sumOf } from "./sum.ts";

/**
 * horizontal-pod-autoscaler: scales each target to the replica count computed from its metrics, once per sync period.
 * Watches HorizontalPodAutoscalers; reads Pods, scales and the metrics APIs; writes scales and
 * horizontalpodautoscalers/status.
 * Source: pkg/controller/podautoscaler/horizontal.go
 */
export function newHorizontalPodAutoscalerController(base: ControllerContext): Controller {
  const { syncPeriodMs } = base.config.horizontalPodAutoscaler;
  const { client, clock } = base;
  const scales = newScaleClient(client, clock);
  const ctx: AutoscalerContext = {
    ...base,
    autoscalers: base.informers.for<HorizontalPodAutoscaler>(horizontalPodAutoscalers),
    pods: base.informers.for<Pod>(pods),
    scales,
    metrics: newMetricsClient({ client, scales, clock, cacheMs: syncPeriodMs }),
    histories: new Map(),
  };
  return defineController(ctx, {
    name: "horizontalpodautoscaler",
    sources: [enqueueSelf(ctx.autoscalers), needsSynced(ctx.pods)],
    reconcile,
    // Every autoscaler is reconciled once per period, whatever events arrive, because metrics change without events.
    batchMs: syncPeriodMs,
    limiter: everyPeriod(syncPeriodMs),
  });
}

interface AutoscalerContext extends ControllerContext {
  readonly autoscalers: SharedInformer<HorizontalPodAutoscaler>;
  readonly pods: SharedInformer<Pod>;
  readonly scales: ScaleClient;
  readonly metrics: MetricsClient;
  readonly histories: Map<ObjectKey, History>;
}

function everyPeriod(periodMs: number): RateLimiter<ObjectKey> {
  return { when: () => periodMs, forget() {}, numRequeues: () => 0 };
}

async function reconcile(ctx: AutoscalerContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { histories } = ctx;
  const autoscaler = ctx.autoscalers.lister.get(key);
  if (autoscaler === undefined) {
    histories.delete(key);
    return done;
  }
  const draft = newStatus(autoscaler, ctx.clock.now());
  try {
    await scaleTarget(ctx, key, autoscaler, draft, signal);
  } finally {
    if (!signal.aborted) await writeStatus(ctx, autoscaler, draft, signal);
  }
  return { requeueAfterMs: ctx.config.horizontalPodAutoscaler.syncPeriodMs, decision: sumOf(autoscaler, draft.status()) };
}

async function scaleTarget(
  ctx: AutoscalerContext,
  key: ObjectKey,
  autoscaler: HorizontalPodAutoscaler,
  draft: StatusDraft,
  signal: AbortSignal,
): Promise<void> {
  const { scales, histories } = ctx;
  const { metadata, spec } = autoscaler;
  const { kind, name } = spec.scaleTargetRef;
  const { namespace } = metadata;
  const reference = `${kind}/${namespace}/${name}`;
  const { ref, scale } = await readScale(ctx, autoscaler, draft, reference, signal);
  draft.condition("AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale");
  const current = scale.spec.replicas ?? 0;
  const at = ctx.clock.monotonic();
  if (!histories.has(key)) histories.set(key, newHistory(current, at));
  draft.currentReplicas(current);

  const decision = await decideReplicas(ctx, key, autoscaler, scale, draft, reference, signal);
  if (decision.replicas !== current) {
    const recordEvent = eventsFor(ctx, autoscaler);
    const what = `New size: ${decision.replicas}; reason: ${decision.reason}`;
    try {
      await scales.update(ref, { ...scale, spec: { ...scale.spec, replicas: decision.replicas } }, signal);
    } catch (err) {
      recordEvent("Warning", "FailedRescale", `${what}; error: ${messageOf(err)}`);
      const message = `the HPA controller was unable to update the target scale: ${messageOf(err)}`;
      draft.condition("AbleToScale", "False", "FailedUpdateScale", message);
      throw new Error(`failed to rescale ${reference}`, { cause: err });
    }
    const message = `the HPA controller was able to update the target scale to ${decision.replicas}`;
    draft.condition("AbleToScale", "True", "SucceededRescale", message);
    recordEvent("Normal", "SuccessfulRescale", what);
    const history = histories.get(key)!;
    histories.set(key, withScaleEvent(history, spec.behavior, current, decision.replicas, at));
    ctx.log.info("Successful rescale", { hpa: key, from: current, to: decision.replicas, reason: decision.reason });
    draft.rescaled(formatTime(ctx.clock.now()));
  }
  draft.replicas(current, decision.replicas, decision.metrics);
}

async function readScale(
  ctx: AutoscalerContext,
  autoscaler: HorizontalPodAutoscaler,
  draft: StatusDraft,
  reference: string,
  signal: AbortSignal,
): Promise<{ ref: ResourceRef; scale: Scale }> {
  const { scales } = ctx;
  const { apiVersion = "", kind, name } = autoscaler.spec.scaleTargetRef;
  let action = "unable to determine resource for scale target reference";
  try {
    const ref = await scales.resourceOf(apiVersion, kind, "any version");
    action = `failed to query scale subresource for ${reference}`;
    return { ref, scale: await scales.get(ref, { namespace: autoscaler.metadata.namespace, name }, signal) };
  } catch (err) {
    eventsFor(ctx, autoscaler)("Warning", "FailedGetScale", messageOf(err));
    const message = `the HPA controller was unable to get the target's current scale: ${messageOf(err)}`;
    draft.condition("AbleToScale", "False", "FailedGetScale", message);
    throw new Error(action, { cause: err });
  }
}

interface Decision {
  readonly replicas: number;
  /** Reason in the Event. */
  readonly reason: string;
  readonly metrics: readonly MetricStatus[];
}

async function decideReplicas(
  ctx: AutoscalerContext,
  key: ObjectKey,
  autoscaler: HorizontalPodAutoscaler,
  scale: Scale,
  draft: StatusDraft,
  reference: string,
  signal: AbortSignal,
): Promise<Decision> {
  const { minReplicas = 1, maxReplicas, behavior } = autoscaler.spec;
  const current = scale.spec.replicas ?? 0;
  if (current === 0 && minReplicas !== 0) {
    const message = "scaling is disabled since the replica count of the target is zero";
    draft.condition("ScalingActive", "False", "ScalingDisabled", message);
    return { replicas: 0, reason: "", metrics: [] };
  }
  if (current > maxReplicas)
    return { replicas: maxReplicas, reason: "Current number of replicas above Spec.MaxReplicas", metrics: [] };
  if (current < minReplicas)
    return { replicas: minReplicas, reason: "Current number of replicas below Spec.MinReplicas", metrics: [] };

  const {
    replicas: desired,
    name,
    statuses,
  } = await computeReplicas(ctx, autoscaler, scale, draft, signal).catch((err) => {
    eventsFor(ctx, autoscaler)("Warning", "FailedComputeMetricsReplicas", messageOf(err));
    throw new Error(`failed to compute desired number of replicas based on listed metrics for ${reference}`, { cause: err });
  });
  const history = ctx.histories.get(key)!;
  const normalized = normalizeReplicas({
    behavior,
    history,
    current,
    desired,
    minReplicas,
    maxReplicas,
    downscaleStabilizationMs: ctx.config.horizontalPodAutoscaler.downscaleStabilizationMs,
    now: ctx.clock.monotonic(),
  });
  ctx.histories.set(key, { ...history, recommendations: normalized.recommendations });
  for (const [type, { status, reason, message }] of [
    ["AbleToScale", normalized.ableToScale],
    ["ScalingLimited", normalized.scalingLimited],
  ] as const)
    draft.condition(type, status, reason, message);
  const reason = desired > current ? `${name} above target` : desired < current ? "All metrics below target" : "";
  return { replicas: normalized.replicas, reason, metrics: statuses };
}

/**
 * Computes the highest replica count of all metrics. A failing metric prevents scaling down.
 * @throws Error when no metric is valid, or when one is invalid and the others propose scaling down
 */
async function computeReplicas(
  ctx: AutoscalerContext,
  autoscaler: HorizontalPodAutoscaler,
  scale: Scale,
  draft: StatusDraft,
  signal: AbortSignal,
): Promise<{ replicas: number; name: string; statuses: MetricStatus[] }> {
  const { metrics: client } = ctx;
  const { horizontalPodAutoscaler: config } = ctx.config;
  const { namespace = "" } = autoscaler.metadata;
  const recordEvent = eventsFor(ctx, autoscaler);
  const selector = selectorOf(scale, draft, recordEvent);
  const specReplicas = scale.spec.replicas ?? 0;
  const target = {
    namespace,
    selector,
    pods: ctx.pods.lister.select(selector, namespace),
    specReplicas,
    statusReplicas: scale.status?.replicas ?? 0,
  };
  const metrics = { client, rules: { ...config.rules, now: ctx.clock.now() } };
  const specs = autoscaler.spec.metrics ?? [];
  const failures: MetricError[] = [];
  const statuses: MetricStatus[] = [];
  let best: MetricProposal | undefined;
  for (const spec of specs) {
    const turn = ctx.turns.next();
    if (turn !== undefined) await turn;
    try {
      const proposal = await proposalOf(spec, target, metrics, signal);
      statuses.push(proposal.status);
      if (best === undefined || best.replicas === 0 || proposal.replicas > best.replicas) best = proposal;
    } catch (err) {
      if (!(err instanceof MetricError)) throw err;
      recordEvent("Warning", err.reason, err.shown);
      failures.push(err);
      statuses.push({ type: "" }); // placeholder: the status lists the metrics in the order of the spec
    }
  }
  const [first] = failures;
  if (best === undefined || (first !== undefined && best.replicas < specReplicas)) {
    if (first !== undefined) {
      const message = `the HPA was unable to compute the replica count: ${first.shown}`;
      draft.condition("ScalingActive", "False", first.reason, message);
    }
    const count = `${failures.length} invalid out of ${specs.length}`;
    throw new Error(`invalid metrics (${count}), first error is: ${first === undefined ? "<nil>" : first.message}`);
  }
  const message = `the HPA was able to successfully calculate a replica count from ${best.name}`;
  draft.condition("ScalingActive", "True", "ValidMetricFound", message);
  return { replicas: best.replicas, name: best.name, statuses };
}

function selectorOf(scale: Scale, draft: StatusDraft, recordEvent: ReturnType<typeof eventsFor>): LabelSelector {
  const text = scale.status?.selector ?? "";
  if (text === "") {
    recordEvent("Warning", "SelectorRequired", "selector is required");
    draft.condition("ScalingActive", "False", "InvalidSelector", "the HPA target's scale is missing a selector");
    throw new Error("selector is required");
  }
  try {
    return LabelSelector.parse(text);
  } catch (err) {
    const message = `couldn't convert selector into a corresponding internal selector object: ${messageOf(err)}`;
    recordEvent("Warning", "InvalidSelector", message);
    draft.condition("ScalingActive", "False", "InvalidSelector", message);
    throw new Error(message, { cause: err });
  }
}

function eventsFor({ recorder }: ControllerContext, autoscaler: HorizontalPodAutoscaler) {
  return (type: "Normal" | "Warning", reason: string, message: string): void =>
    recorder.event({ ...autoscaler, apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler" }, type, reason, message);
}

async function writeStatus(
  ctx: ControllerContext,
  autoscaler: HorizontalPodAutoscaler,
  draft: StatusDraft,
  signal: AbortSignal,
): Promise<void> {
  const status: HorizontalPodAutoscalerStatus = draft.status();
  if (semanticEqual(autoscaler.status, status)) return;
  try {
    const changed = { ...autoscaler, status };
    await ctx.client.update<HorizontalPodAutoscaler>(horizontalPodAutoscalers, changed, { subresource: "status", signal });
  } catch (err) {
    eventsFor(ctx, autoscaler)("Warning", "FailedUpdateStatus", messageOf(err));
    throw new Error(`failed to update status for ${autoscaler.metadata.name}`, { cause: err });
  }
}
