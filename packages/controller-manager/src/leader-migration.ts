import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import { type FieldError, formatFieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { ControllerManagerFlags } from "./flags.ts";

/**
 * Controllers that run under a second lock, so that they can be migrated to another program without running twice or
 * not at all.
 * Source: k8s.io/controller-manager config, LeaderMigrationConfiguration
 */
export interface LeaderMigration {
  /** Name of the second lock. */
  readonly leaderName: string;
  readonly resourceLock: string;
  readonly controllerLeaders: readonly ControllerLeader[];
}

/** Assignment of one controller to a program. */
interface ControllerLeader {
  /** Name as in `--controllers`. */
  readonly name: string;
  /** Program that runs the controller; `*` for any program that holds both locks. */
  readonly component: string;
}

/** Lock under which this program runs a controller; `unowned` when another program runs it. */
export type Share = "main" | "migrated" | "unowned";

/** Pure: the lock under which the controller runs. Source: k8s.io/controller-manager pkg/leadermigration/migrator.go */
export function shareOf(migration: LeaderMigration | undefined, controller: string): Share {
  const leader = migration?.controllerLeaders.findLast(({ name }) => name === controller);
  if (leader === undefined) return "main";
  return leader.component === component || leader.component === "*" ? "migrated" : "unowned";
}

const component = "kube-controller-manager";

const defaultMigration: LeaderMigration = {
  leaderName: "cloud-provider-extraction-migration",
  resourceLock: "leases",
  controllerLeaders: ["route", "service", "cloud-node-lifecycle"].map((name) => ({ name, component: "*" })),
};

const apiVersions = ["controllermanager.config.k8s.io/v1alpha1", "controllermanager.config.k8s.io/v1beta1"];

/**
 * Reads the leader migration configuration.
 * @returns undefined when disabled, or without leader election
 * @param errors receives errors of the file
 * Source: k8s.io/controller-manager pkg/leadermigration/options
 */
export function leaderMigrationOf(
  flags: Pick<ControllerManagerFlags, "enable-leader-migration" | "leader-migration-config" | "feature-gates">,
  leaderElection: Pick<LeaderElectionConfig, "enabled">,
  errors: string[],
): LeaderMigration | undefined {
  if (!flags["enable-leader-migration"]) return undefined;
  if (flags["feature-gates"]["ControllerManagerLeaderMigration"] === false) {
    errors.push("Leader Migration is not enabled through feature gate");
    return undefined;
  }
  const path = flags["leader-migration-config"];
  let migration = defaultMigration;
  try {
    if (path !== "") migration = migrationIn(readConfigFile(path, "LeaderMigrationConfiguration", apiVersions));
  } catch (err) {
    errors.push(`unable to read leader migration configuration from ${JSON.stringify(path)}: ${messageOf(err)}`);
    return undefined;
  }
  const wrong = problemsOf(migration);
  if (wrong.length > 0) errors.push(`failed to parse leader migration configuration: [${wrong.map(formatFieldError).join(" ")}]`);
  return leaderElection.enabled ? migration : undefined;
}

/** @throws Error for fields of a wrong type */
function migrationIn(config: Record<string, unknown>): LeaderMigration {
  const leaders = config["controllerLeaders"] ?? [];
  if (!Array.isArray(leaders)) throw new Error("controllerLeaders is not a list");
  return {
    leaderName: textIn(config, "leaderName"),
    resourceLock: textIn(config, "resourceLock") || "leases",
    controllerLeaders: leaders.map((leader: unknown, i) => {
      if (!isJsonObject(leader)) throw new Error(`controllerLeaders[${i}] is not an object`);
      return { name: textIn(leader, "name"), component: textIn(leader, "component") };
    }),
  };
}

function textIn(object: Record<string, unknown>, field: string): string {
  const value = object[field] ?? "";
  if (typeof value !== "string") throw new Error(`${field} is not a string`);
  return value;
}

/** Source: k8s.io/controller-manager pkg/leadermigration/config ValidateLeaderMigrationConfiguration */
function problemsOf({ leaderName, resourceLock, controllerLeaders }: LeaderMigration): FieldError[] {
  const errors: FieldError[] = [];
  if (leaderName === "") errors.push(required("leaderName", "leaderName must be set for LeaderMigrationConfiguration"));
  if (resourceLock !== "leases" && resourceLock !== "endpoints")
    errors.push(invalidValue("resourceLock", resourceLock, "resource Lock must be one of 'leases' or 'endpoints'"));
  for (const [i, leader] of controllerLeaders.entries()) {
    if (leader.component === "") errors.push(required(`controllerLeaders[${i}].component`, "component must be set"));
    if (leader.name === "") errors.push(required(`controllerLeaders[${i}].name`, "name must be set"));
  }
  return errors;
}
