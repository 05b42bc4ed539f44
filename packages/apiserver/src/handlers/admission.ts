import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { decodeManaged } from "@coxswain/apimachinery/objects/patch/apply/managed-fields";
import type { AdmissionAttributes } from "../admission/plugin.ts";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import { dedupOwnerReferences } from "./decode.ts";
import type { Call } from "./env.ts";
import type { WriteRequestOptions } from "./options.ts";

/** The attributes of a write for admission plugins. */
export function admissionAttributes(
  call: Call,
  operation: AdmissionAttributes["operation"],
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
  details: { dryRun: boolean; options?: unknown; kind?: AdmissionAttributes["kind"] },
): AdmissionAttributes {
  return new WriteAttributes(call, operation, object, oldObject, details);
}

/**
 * A class, since a getter in an object literal creates a hidden class per request, which makes property
 * access in the plugins megamorphic.
 */
class WriteAttributes implements AdmissionAttributes {
  readonly operation: AdmissionAttributes["operation"];
  readonly kind: AdmissionAttributes["kind"];
  readonly resource: AdmissionAttributes["resource"];
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly user: AdmissionAttributes["user"];
  readonly dryRun: boolean;
  readonly options: unknown;
  changes: AdmissionAttributes["changes"];
  round: number | undefined;
  wantsAnotherRound: boolean | undefined;
  reinvocation: AdmissionAttributes["reinvocation"];
  readonly #ctx: Call["ctx"];

  constructor(
    call: Call,
    operation: AdmissionAttributes["operation"],
    object: KubeObject | undefined,
    oldObject: KubeObject | undefined,
    { dryRun, options, kind }: Parameters<typeof admissionAttributes>[4],
  ) {
    const { ctx, served } = call;
    this.#ctx = ctx;
    this.operation = operation;
    this.kind = kind ?? served.kind;
    this.resource = { group: served.definition.group, version: served.version.version, resource: served.definition.resource };
    this.subresource = call.subresource;
    this.name = call.name !== "" ? call.name : (object?.metadata?.name ?? "");
    this.namespace = namespaceOf(call, this.name);
    this.object = object;
    this.oldObject = oldObject;
    this.user = ctx.user;
    this.dryRun = dryRun;
    this.options = options;
    this.changes = undefined;
    this.round = undefined;
    this.wantsAnotherRound = undefined;
    this.reinvocation = undefined;
  }

  /** Created only for the few plugins that call other servers. */
  get signal(): AbortSignal {
    return this.#ctx.signal;
  }

  warn(text: string): void {
    this.#ctx.warn(text);
  }

  annotate(key: string, value: string): void {
    this.#ctx.audit?.annotate(key, value);
  }

  annotateContent(key: string, value: string): void {
    this.#ctx.audit?.annotateContent(key, value);
  }

  webhookTook(type: "admit" | "validating", ms: number): void {
    this.#ctx.webhookTook?.(type, ms);
  }
}

/** The two admission stages of a create or an update, which change the object in place. */
interface WriteAdmission {
  /** @param current undefined when the object is created */
  mutateAdmission(object: KubeObject, current: KubeObject | undefined): Promise<void>;
  validateAdmission(object: KubeObject, current?: KubeObject): Promise<void>;
}

/**
 * The admission of one request: CREATE when the object does not exist yet, else UPDATE.
 * @param sizeBytes size of the request body, as an estimate of the object's
 */
export function writeAdmission(call: Call, options: WriteRequestOptions, sizeBytes?: number): WriteAdmission {
  const { env } = call;
  const { turns } = env.services;
  let mutated: AdmissionAttributes | undefined;
  const attributes = (object: KubeObject, current: KubeObject | undefined): AdmissionAttributes =>
    admissionAttributes(call, current === undefined ? "CREATE" : "UPDATE", object, current, { dryRun: options.dryRun, options });
  return {
    async mutateAdmission(object, current) {
      await turns.next(sizeBytes);
      const mutation = attributes(object, current);
      mutated = mutation;
      await guardEntries(call, object, () => env.admission.mutate(mutation));
      if (object.metadata.ownerReferences !== undefined) dedupOwnerReferences(call, object, true);
      await turns.next(sizeBytes);
    },
    async validateAdmission(object, current) {
      await turns.next(sizeBytes);
      if (current === undefined && call.ctx.info.verb !== "create") await authorizeCreate(call);
      // Not the attributes of the first stage: a generated name is known only now.
      const validation = attributes(object, current);
      if (mutated?.changes !== undefined) validation.changes = mutated.changes;
      await env.admission.validate(validation);
      await turns.next(sizeBytes);
    },
  };
}

/** Runs mutating admission; restores `metadata.managedFields` when a plugin made them invalid, and warns the client. */
export async function guardEntries(call: Call, object: KubeObject, mutate: () => Promise<void>): Promise<void> {
  const before = object.metadata.managedFields;
  await mutate();
  const after = object.metadata;
  if (after.managedFields === before || after.managedFields === undefined) return;
  try {
    decodeManaged(after.managedFields);
  } catch (err) {
    if (before === undefined) delete after.managedFields;
    else after.managedFields = before;
    call.ctx.warn(
      ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating " +
        `admission controller; please fix your requests: ${messageOf(err)}`,
    );
  }
}

/** In admission attributes, the namespace of a Namespace object is its own name. Source: handlers/create.go, requestinfo.go */
function namespaceOf(call: Call, name: string): string {
  const { definition } = call.served;
  if (definition.resource === "namespaces" && definition.group === "") return name;
  return call.namespace;
}

/**
 * An update or apply that creates the object requires the permission to create it, too.
 * @throws Forbidden
 */
async function authorizeCreate(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  if (env.services.authorize === undefined) return;
  const { info } = ctx;
  const decision = await env.services.authorize({
    user: ctx.user,
    verb: "create",
    isResourceRequest: true,
    namespace: info.namespace,
    group: info.group,
    version: info.version,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
  });
  if (decision.decision === "allow") return;
  throw forbidden(served.definition, call.name, decision.reason ?? "");
}

/** The context of strategies for this call. */
export function strategyContext(call: Call, dryRun: boolean): StrategyContext {
  return {
    user: call.ctx.user,
    namespace: call.namespace,
    dryRun,
    now: call.env.services.now,
    requestVersion: call.served.kind.version,
    featureEnabled: call.env.services.featureEnabled,
    warn: (text) => call.ctx.warn(text),
  };
}
