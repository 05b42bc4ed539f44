import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { formatFieldError, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import type { ControllerManagerFlags } from "./flags.ts";

/**
 * Which controllers run under a second lock, so that they can move to another program without running twice or not at
 * all meanwhile. Source: k8s.io/controller-manager config, LeaderMigrationConfiguration
 */
export interface LeaderMigration {
  /** Name of the second lock. */
  readonly leaderName: string;
  readonly resourceLock: string;
  readonly controllerLeaders: readonly ControllerLeader[];
}

export interface ControllerLeader {
  /** As in `--controllers`. */
  readonly name: string;
  /** The program that runs it; `*`: any that has both locks. */
  readonly component: string;
}

/** Under which lock a controller runs here; under none when another program has it. */
export type Share = "main" | "migrated" | "unowned";

/** Pure. Source: k8s.io/controller-manager pkg/leadermigration/migrator.go */
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
 * @returns undefined when it is not asked for; it takes a leader election to be done at all
 * @param errors takes what is wrong with the file
 * Source: k8s.io/controller-manager pkg/leadermigration/options
 */
export function leaderMigrationOf(
  flags: Pick<ControllerManagerFlags, "enable-leader-migration" | "leader-migration-config" | "leader-elect" | "feature-gates">,
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
    errors.push(`unable to read leader migration configuration from ${JSON.stringify(path)}: ${(err as Error).message}`);
    return undefined;
  }
  const wrong = problemsOf(migration);
  if (wrong.length > 0) errors.push(`failed to parse leader migration configuration: [${wrong.map(formatFieldError).join(" ")}]`);
  return flags["leader-elect"] ? migration : undefined;
}

/** @throws Error for fields of other types */
function migrationIn(config: Record<string, unknown>): LeaderMigration {
  const leaders = config["controllerLeaders"] ?? [];
  if (!Array.isArray(leaders)) throw new Error("controllerLeaders is not a list");
  return {
    leaderName: textIn(config, "leaderName"),
    resourceLock: textIn(config, "resourceLock") || "leases",
    controllerLeaders: leaders.map((leader: unknown, i) => {
      if (typeof leader !== "object" || leader === null) throw new Error(`controllerLeaders[${i}] is not an object`);
      const given = leader as Record<string, unknown>;
      return { name: textIn(given, "name"), component: textIn(given, "component") };
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
