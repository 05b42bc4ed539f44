import assert from "node:assert/strict";
import { test } from "node:test";
import { gates } from "@coxswain/apimachinery/flags/gates";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { builtInResources, internalResources } from "../registry/catalogue.ts";
import { beforeCreate } from "../registry/generic/before-create.ts";
import { beforeUpdate } from "../registry/generic/before-update.ts";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import type { Strategy, StrategyContext } from "../registry/generic/strategy.ts";

/** A table row: a change to a valid object, and all expected errors in order. */
interface KindRule {
  readonly name: string;
  /** Values by path, such as `spec.ports[0].name`; undefined removes. */
  readonly change: Changes;
  /** When given, the change is an update, from the valid object with these changes. */
  readonly before?: Changes;
  /** The update is made through the status subresource. */
  readonly status?: true;
  /** Skips defaulting, for rules on stored objects and objects created internally. */
  readonly undefaulted?: true;
  /** Feature gates that differ from the defaults of 1.23. */
  readonly gates?: Readonly<Record<string, boolean>>;
  /** API version of the request, where it is not the storage version. */
  readonly requestVersion?: string;
  readonly want: readonly string[];
}

type Changes = Readonly<Record<string, unknown>>;

const featureEnabled = (gate: string): boolean => gates[gate]?.default ?? false;
const config = {
  services: () => {
    throw new Error("no services in this test");
  },
  serviceClusterIpRange: ["10.96.0.0/12"],
  nodePortRange: { from: 30000, to: 32767 },
  featureEnabled,
  kubeletConnection: { preferredAddressTypes: ["InternalIP"], port: 10250 },
};
/** All built-in resources, including internal ones. */
export const resourcesForTests: readonly ResourceDefinition[] = [...builtInResources(config), ...internalResources()];

/**
 * Defines one test per row, with defaulting, strategy and metadata validation of a request in the storage version.
 * @param resource `pods`, `deployments.apps`
 */
export function testKindRules(resource: string, valid: object, rows: readonly KindRule[]): void {
  for (const row of rows) {
    const verb = row.before ? "update" : "create";
    test(`${resource}: ${verb} ${row.want.length === 0 ? "takes" : "refuses"} ${row.name}`, () => {
      assert.deepEqual(faultsOf(resource, valid, row), row.want);
    });
  }
}

/** Validates the change of a row. @returns the errors as `field: message`; empty when it is accepted */
export function faultsOf(resource: string, valid: object, row: Omit<KindRule, "want" | "name">): string[] {
  const definition = definitionOf(resource);
  const strategy = row.status ? definition.statusStrategy : definition.strategy;
  assert.ok(strategy, `nothing to write ${resource} with`);
  const namespace = definition.namespaced ? "default" : "";
  const ctx = contextOf(definition, row.requestVersion ?? definition.hub, row.gates);
  const stored = { "metadata.uid": "1", "metadata.resourceVersion": "1" };
  const built = (...changes: (Changes | undefined)[]): KubeObject =>
    madeOf(definition, valid, changes, namespace, row.undefaulted);
  try {
    if (!row.before) atOnce(beforeCreate(definition, strategy, ctx, built(row.change)));
    else atOnce(beforeUpdate(definition, strategy, ctx, built(stored, row.before, row.change), built(stored, row.before)));
    return [];
  } catch (err) {
    if (!(err instanceof StatusError)) throw err;
    const causes = err.status.details?.causes;
    if (!causes) throw err; // not a validation error
    return causes.map(({ field, message = "" }) => `${field}: ${withoutDifference(message)}`);
  }
}

/** Removes the appended differences from an error message; `differencesText` has its own tests. */
const withoutDifference = (message: string): string => message.split("\n", 1)[0] ?? "";

/** Request context of an administrator's request in the storage version. @param switched gates that differ from the default */
export function contextOf(
  definition: ResourceDefinition,
  requestVersion: string,
  switched: Readonly<Record<string, boolean>> = {},
): StrategyContext {
  return {
    user: { name: "admin", uid: "", groups: [], extra: {} },
    namespace: definition.namespaced ? "default" : "",
    dryRun: false,
    now: () => 0,
    requestVersion,
    featureEnabled: (gate) => switched[gate] ?? featureEnabled(gate),
    warn() {},
  };
}

/** The object after defaulting in the storage version. */
export function defaultsOf(resource: string, object: object): KubeObject {
  return madeOf(definitionOf(resource), object, [], "");
}

/** The strategies of a resource as the server has them: they drop fields of disabled gates first. */
export function strategiesOf<T extends KubeObject>(resource: string): { strategy: Strategy<T>; statusStrategy: Strategy<T> } {
  return definitionOf(resource) as unknown as { strategy: Strategy<T>; statusStrategy: Strategy<T> }; // cast: of a kind that has both
}

function definitionOf(resource: string): ResourceDefinition {
  const definition = resourcesForTests.find((d) => (d.group === "" ? d.resource : `${d.resource}.${d.group}`) === resource);
  assert.ok(definition, `no resource ${resource}`);
  return definition;
}

/** The object of a request: changes applied, then defaulted. */
function madeOf(
  definition: ResourceDefinition,
  valid: object,
  changes: (Changes | undefined)[],
  namespace: string,
  undefaulted = false,
): KubeObject {
  const object = structuredClone(valid) as KubeObject;
  object.metadata = { name: "valid", ...(namespace ? { namespace } : {}), ...object.metadata };
  for (const each of changes) for (const [path, value] of Object.entries(each ?? {})) put(object, path, structuredClone(value));
  if (!undefaulted) definition.versions.find((v) => v.version === definition.hub)?.defaults?.(object);
  return object;
}

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON
function put(root: any, path: string, value: unknown): void {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
  const last = steps.pop() as string;
  let node = root;
  for (const step of steps) {
    node[step] ??= {};
    node = node[step];
  }
  if (value === undefined) delete node[last];
  else node[last] = value;
}
