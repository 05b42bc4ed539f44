import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { FlowSchema, PriorityLevelConfiguration } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import defaults from "./flow-schemas.json" with { type: "json" };

type Level = PriorityLevelConfiguration & KubeObject;
type Schema = FlowSchema & KubeObject;

/**
 * The priority levels and flow schemas of a new cluster, in `flow-schemas.json`.
 * Source: k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go
 */
export const defaultLevels: readonly Level[] = defaults.levels;
export const defaultSchemas: readonly Schema[] = defaults.schemas;

/** Objects that always exist with exactly this spec. */
const mandatory = ["exempt", "catch-all"];

/** Whether an object is mandatory, by name. */
export const isMandatory = ({ metadata: { name = "" } }: KubeObject): boolean => mandatory.includes(name);
