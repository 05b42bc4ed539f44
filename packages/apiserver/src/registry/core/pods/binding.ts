import { type FieldError, formatFieldErrors, notSupported, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, conflict, plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Status } from "@coxswain/apimachinery/objects/meta/types";
import type { Binding, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { SubresourceCall } from "../../generic/resource.ts";

/** Resource named in error texts. */
const podBindings = { group: "", resource: "pods/binding" };

/**
 * Assigns a pod to a node. A second binding fails with Conflict.
 * Source: pkg/registry/core/pod/storage/storage.go BindingREST
 */
export async function createPodBinding(call: SubresourceCall<Binding>): Promise<Status> {
  const binding = call.body;
  if (!binding) throw badRequest("not a Binding object");
  await call.admit(binding, undefined);
  if ((binding.metadata.name ?? "") !== call.name) throw badRequest("name in URL does not match name in Binding object");
  const errors = validateBinding(binding);
  if (errors.length > 0) throw plainError(formatFieldErrors(errors));
  if (call.name === "") throw badRequest("Name parameter required.");
  const { uid, resourceVersion } = binding.metadata;
  await call.services
    .store("", "pods")
    .storage.guaranteedUpdate(
      `${call.namespace}/${call.name}`,
      (entry) => bind(entry!.object<Pod>(), binding, call.services.now()),
      {
        dryRun: call.dryRun,
        signal: call.ctx,
        preconditions: { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) },
      },
    );
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 201,
  };
}

function validateBinding(binding: Binding): FieldError[] {
  const errors: FieldError[] = [];
  const kind = binding.target?.kind;
  if (kind && kind !== "Node") errors.push(notSupported("target.kind", kind, ["Node", "<empty>"]));
  if (!binding.target?.name) errors.push(required("target.name", ""));
  return errors;
}

/** A copy of the pod assigned to the node. @throws Conflict when it is already assigned or being deleted */
export function bind(current: Pod, binding: Binding, now: number): Pod {
  const name = current.metadata.name ?? "";
  if (current.metadata.deletionTimestamp) {
    throw conflict(podBindings, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (current.spec.nodeName)
    throw conflict(podBindings, name, `pod ${name} is already assigned to node "${current.spec.nodeName}"`);
  const pod = deepClone(current);
  pod.spec.nodeName = binding.target.name ?? "";
  const annotations = { ...pod.metadata.annotations, ...binding.metadata.annotations };
  if (Object.keys(annotations).length > 0) pod.metadata.annotations = annotations;
  pod.status ??= {};
  const conditions = pod.status.conditions ?? [];
  const scheduled = conditions.find((condition) => condition.type === "PodScheduled");
  if (scheduled === undefined) {
    conditions.push({ type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: formatTime(now) });
  } else {
    if (scheduled.status !== "True") scheduled.lastTransitionTime = formatTime(now);
    scheduled.status = "True";
    delete scheduled.reason;
    delete scheduled.message;
  }
  pod.status.conditions = conditions;
  return pod;
}
